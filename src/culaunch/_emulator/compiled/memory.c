/* Memory. Each access of the text has a site, which remembers the range that it was last in. */

/* Return the range of an access, empty if it is in none. Sites are passed as values: those of a
   kernel without stops are variables that the compiler can keep in registers. */
static RARE Site find(const Launch* c, u64 at, u64 n) {
  u64 low = 0, high = c->ranges;
  while (low < high) {
    u64 middle = (low + high) / 2;
    if (c->bases[middle] <= at)
      low = middle + 1;
    else
      high = middle;
  }
  if (!low || c->ends[low - 1] < at || c->ends[low - 1] - at < n) return (Site){0};
  u64 base = c->bases[low - 1], end = c->ends[low - 1];
  /* Every access of a site has one size. */
  return (Site){base, end - base - n + 1, end, c->saved + c->pages[low - 1] - base / PAGE};
}

static int save_page(Launch* c, Site s, u64 at) {
  u8* flag = s.saved + at / PAGE;
  if (*flag) return *flag == 1; /* 2: read-only, at least in part */
  u64 start = at & ~(u64)(PAGE - 1), end = start + PAGE;
  if (start < s.base) start = s.base;
  if (end > s.end) end = s.end;
  Saved* page = malloc(sizeof *page + (end - start));
  if (!page) return 0;
  *page = (Saved){.next = c->log, .at = start, .size = end - start};
  memcpy(page->bytes, (u8*)start, page->size);
  c->log = page;
  __atomic_store_n(flag, 1, __ATOMIC_RELEASE); /* from now on, all threads may write */
  return 1;
}

static RARE int save(Launch* c, Site s, u64 at) {
  if (!c->crew) return save_page(c, s, at);
  pthread_mutex_lock(&c->crew->lock);
  int saved = save_page(c, s, at);
  pthread_mutex_unlock(&c->crew->lock);
  return saved;
}

static inline u8* global_at(Launch* c, Site* s, u64 at, u64 n, int writes) {
  if (__builtin_expect(at & (n - 1), 0)) return 0;
  if (__builtin_expect(at - s->base >= s->room, 0)) {
    *s = find(c, at, n);
    if (!s->room) return 0;
  }
  if (writes && __builtin_expect(s->saved[at / PAGE] != 1, 0) && !save(c, *s, at)) return 0;
  return (u8*)at;
}

/* Note that a word of shared memory is written: a byte of `written` is 0 or 1. Refuse an undefined
   value, or an update of one. */
static inline int define_word(Launch* c, u8* byte, u64 size, int writes) {
  const u64 ones = 0x0101010101010101ull, all = ones >> (64 - 8 * size);
  u64 have = 0;
  memcpy(&have, byte, size);
  if (have == all) return 1;
  if (writes != 1) return 0;
  c->unwritten -= (all - have) * ones >> 56; /* the number of ones */
  memcpy(byte, &all, size);
  return 1;
}

static __attribute__((noinline)) int define(Launch* c, u64 at, u64 n, int writes) {
  u8* byte = c->written + at;
  for (; n >= 8; n -= 8, byte += 8)
    if (!define_word(c, byte, 8, writes)) return 0;
  if (n == 4) return define_word(c, byte, 4, writes);
  if (n == 2) return define_word(c, byte, 2, writes);
  return !n || define_word(c, byte, 1, writes);
}

#if ORDERED
enum { SOME_THREADS = 2047 }; /* instead of a thread's number and 1 */

/* Refuse an access whose effect may depend on the order of threads: another one has touched the
   word since the last barrier of the block, and one of both writes. */
static int is_alone(Launch* c, u64 at, u64 n, int writes) {
  const u32 own = c->epoch << 11 | c->current;
  for (u64 i = at / 4; i <= (at + n - 1) / 4; ++i) {
    Touched* word = &c->touched[i];
    if (word->writer != own && word->writer >> 11 == c->epoch) return 0;
    if (word->reader != own) {
      int is_read = word->reader >> 11 == c->epoch;
      if (writes && is_read) return 0;
      if (!writes) word->reader = is_read ? c->epoch << 11 | SOME_THREADS : own;
    }
    if (writes) word->writer = own;
  }
  return 1;
}
#endif

/* An aligned address plus n - 1 cannot wrap around. */
static inline u8* shared_at(Launch* c, u64 at, u64 n, int writes) {
  if (__builtin_expect(at & (n - 1) || at + n - 1 >= c->shared_size, 0)) return 0;
  if (__builtin_expect(c->unwritten != 0, 0) && !define(c, at, n, writes)) return 0;
#if ORDERED
  if (c->watches && !is_alone(c, at, n, writes)) return 0;
#endif
  return c->shared + at;
}

static inline u8* local_at(const Launch* c, const Thread* t, u64 at, u64 n) {
  return at & (n - 1) || at + n - 1 >= c->local_size ? 0 : t->local + at;
}

static inline u8* param_at(const Launch* c, u64 at, u64 n) {
  return at & (n - 1) || at + n - 1 >= c->params_size ? 0 : (u8*)c->params + at;
}

static inline u8* generic_at(Launch* c, const Thread* t, Site* s, u64 at, u64 n, int writes) {
  u64 offset = at & ((1ull << 48) - 1);
  switch (at >> 48) {
    case 0:
      return global_at(c, s, at, n, writes);
    case 1:
      return shared_at(c, offset, n, writes);
    case 2:
      return local_at(c, t, offset, n);
    case 3:
      return writes ? 0 : param_at(c, offset, n);
  }
  return 0;
}

/* Accesses of a whole group, `stride` bytes apart, a multiple of their size: one check for all. */
static RARE int save_span(Launch* c, Site s, u64 at, u64 end) {
  for (u64 page = at / PAGE; page <= (end - 1) / PAGE; ++page)
    if (s.saved[page] != 1 && !save(c, s, page * PAGE)) return 0;
  return 1;
}

static inline u8* global_span(Launch* c, Site* s, u64 at, u64 size, u64 stride, u64 n, int writes) {
  u64 last = at + stride * (n - 1);
  if (__builtin_expect(at & (size - 1), 0)) return 0;
  if (__builtin_expect(at - s->base >= s->room || last - s->base >= s->room, 0)) {
    *s = find(c, at, size);
    if (!s->room || last - s->base >= s->room) return 0;
  }
  if (writes && (s->saved[at / PAGE] != 1 || last - at > PAGE || s->saved[last / PAGE] != 1) &&
      !save_span(c, *s, at, last + size))
    return 0;
  return (u8*)at;
}

static __attribute__((noinline)) int define_span(Launch* c, u64 at, u64 size, u64 stride, u64 n,
                                                 int writes) {
  if (size == stride) return define(c, at, n * size, writes);
  for (u64 i = 0; i < n; ++i)
    if (!define(c, at + i * stride, size, writes)) return 0;
  return 1;
}

static inline u8* shared_span(Launch* c, u64 at, u64 size, u64 stride, u64 n, int writes) {
  u64 last = at + stride * (n - 1);
  if (__builtin_expect(at & (size - 1) || last + size - 1 >= c->shared_size || last < at, 0))
    return 0;
  if (__builtin_expect(c->unwritten != 0, 0) && !define_span(c, at, size, stride, n, writes))
    return 0;
  return c->shared + at;
}

static inline u8* generic_span(Launch* c, Site* s, u64 at, u64 size, u64 stride, u64 n,
                               int writes) {
  if (at >> 48 == 1) return shared_span(c, at & ((1ull << 48) - 1), size, stride, n, writes);
  return global_span(c, s, at, size, stride, n, writes);
}

/* Whether a register wraps around between the first thread of a group and the last. */
static inline int wraps_s32(u32 first, i64 rest) {
  return (i32)first + rest != (i32)(first + rest);
}
static inline int wraps_u32(u32 first, i64 rest) { return first + rest != (u32)(first + rest); }
