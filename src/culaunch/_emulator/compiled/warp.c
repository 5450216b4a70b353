/* Meetings of a warp. */

enum {
  SYNC,
  SHFL_UP,
  SHFL_DOWN,
  SHFL_BFLY,
  SHFL_IDX,
  VOTE_ALL,
  VOTE_ANY,
  VOTE_UNI,
  VOTE_BALLOT,
  MATCH_ANY,
  MATCH_ALL,
  ELECT,
  ADD,
  MIN_S,
  MIN_U,
  MAX_S,
  MAX_U,
  AND,
  OR,
  XOR
};

static int meet(Thread* t, u32 here) {
  u32 own = t->lane, first = __builtin_ctz(here), votes = 0, equal = 0;
  const Thread* warp = t - own;
  if (t->what >= SHFL_UP && t->what <= SHFL_IDX) {
    u32 b = t->x[1] & 31, segment = t->x[2] >> 8 & 31, limit = t->x[2] & 31;
    i32 bound = (i32)((own & segment) | (limit & ~segment)), from;
    switch (t->what) {
      case SHFL_UP:
        from = (i32)own - (i32)b;
        t->p = from >= bound;
        break;
      case SHFL_DOWN:
        from = own + b;
        t->p = from <= bound;
        break;
      case SHFL_BFLY:
        from = own ^ b;
        t->p = from <= bound;
        break;
      default:
        from = (own & segment) | (b & ~segment);
        t->p = from <= bound;
    }
    if (!t->p) from = own;
    if (!(here >> from & 1)) return 0;
    t->y = warp[from].x[0];
    return 1;
  }
  u32 total = warp[first].x[0];
  for (u32 i = 0; i < 32; ++i) {
    if (!(here >> i & 1)) continue;
    u32 x = warp[i].x[0];
    votes |= (u32)(x != 0) << i;
    equal |= (u32)(x == t->x[0] && warp[i].x[1] == t->x[1]) << i;
    if (i == first) continue;
    switch (t->what) {
      case ADD:
        total += x;
        break;
      case MIN_S:
        if ((i32)x < (i32)total) total = x;
        break;
      case MIN_U:
        if (x < total) total = x;
        break;
      case MAX_S:
        if ((i32)x > (i32)total) total = x;
        break;
      case MAX_U:
        if (x > total) total = x;
        break;
      case AND:
        total &= x;
        break;
      case OR:
        total |= x;
        break;
      case XOR:
        total ^= x;
        break;
    }
  }
  switch (t->what) {
    case VOTE_ALL:
      t->y = votes == here;
      break;
    case VOTE_ANY:
      t->y = votes != 0;
      break;
    case VOTE_UNI:
      t->y = votes == here || !votes;
      break;
    case VOTE_BALLOT:
      t->y = votes;
      break;
    case MATCH_ANY:
      t->y = equal;
      break;
    case MATCH_ALL:
      t->p = equal == here;
      t->y = t->p ? here : 0;
      break;
    case ELECT:
      t->y = first;
      t->p = first == own;
      break;
    default:
      t->y = total;
  }
  return 1;
}

/* Let the lanes of a warp go on that have all met: -1 if that needs the other engine. */
static int release_warp(Thread* warp, u32 lanes) {
  u32 waiting = 0, alive = 0;
  for (u32 i = 0; i < lanes; ++i) {
    waiting |= (u32)(warp[i].state == AT_WARP) << i;
    alive |= (u32)(warp[i].state < EXITED) << i;
  }
  int released = 0;
  for (u32 left = waiting; left;) {
    u32 first = __builtin_ctz(left), same = 0, mask = warp[first].mask;
    for (u32 i = first; i < lanes; ++i)
      if (left >> i & 1 && warp[i].pc == warp[first].pc && warp[i].mask == mask) same |= 1u << i;
    left &= ~same;
    if (same & ~mask) return -1; /* a lane that its mask does not name */
    if ((mask & alive) != same) continue;
    for (u32 rest = same; rest; rest &= rest - 1)
      if (!meet(&warp[__builtin_ctz(rest)], same)) return -1;
    for (u32 rest = same; rest; rest &= rest - 1) warp[__builtin_ctz(rest)].state = READY;
    released = 1;
  }
  return released;
}
