/* What every compiled kernel shares: memory with its checks, warps, barriers, and the way back.

A launch is a transaction. Each page of memory is saved before it is first written. Whatever is
wrong, or only unusual, ends the launch: the pages are put back, and the NumPy engine runs it from
the start. So this code never reports a fault, it only has to notice one. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t i8;
typedef int16_t i16;
typedef int32_t i32;
typedef int64_t i64;
typedef float f32;
typedef double f64;
typedef u16 __attribute__((may_alias)) a16;
typedef u32 __attribute__((may_alias)) a32;
typedef u64 __attribute__((may_alias)) a64;
typedef u8 a8;

/* How a run of a thread ends, and how a launch does. */
enum { READY, LED, AT_BARRIER, AT_WARP, YIELDED, EXITED, EXITED_LATE, ABANDONED, LEFT, ALONE };
enum { DONE, UNUSUAL, STUCK, INTERRUPTED, NO_MEMORY, APART };
/* Not in each of the hundreds of accesses that a text may have. */
#define RARE __attribute__((noinline, cold))
enum { PAGE = 4096, MOST_YIELDS = 1 << 14, POLL_EVERY = 1 << 22 };

typedef struct {
  REGISTERS
} Registers;
typedef struct {
  STORED
} Stored; /* what a group keeps while it stops, beside the registers of its first thread */
typedef void (*Loop)(char**, const intptr_t*, const intptr_t*, void*);
typedef struct {
  u64 base, room, end;
  u8* saved;
} Site; /* `saved` is indexed by whole pages */
typedef struct Saved {
  struct Saved* next;
  u64 at;
  u32 size;
  u8 bytes[];
} Saved;
typedef struct {
  u32 pc, lane, warp, tid[3];
  u32 mask, what, x[3]; /* a meeting of a warp: who, which operation, its operands */
  u32 y, p;             /* and its results */
  u32 bar, count, vote, where;
  u32 group, first; /* how many threads run side by side, from this one on: now, and at first */
  u8 state;
  u8* local;
  Registers r;
} Thread;
typedef struct {
  u64 ranges;
  const u64 *bases, *ends, *pages; /* memory, and where its pages begin in `saved` */
  u8* saved;                       /* 1: the page was saved; 2: it is read-only */
  const u8* params;
  u64 params_size;
  const u64* symbols;
  u32 grid[3], block[3];
  u64 shared_size, local_size;
  u32 checks;
  const Loop* loops;
  void* const* loop_data;
  void* (*call)(void*);
  void (*release)(void*);
  void* nothing; /* a function of Python */
  f64 deadline;  /* of the monotonic clock; 0: none */
  u64 groups;    /* that ran to their end side by side */
  u32 apart;     /* whether all threads run one after the other */
  /* Below is the run's own. */
  u32 ctaid[3], threads, live, late, work, why;
  u32 together, formed; /* the groups of a block: now, and at first */
  u64 unwritten;
  u8 *shared, *written;
  Stored* stored;
  Thread* all;
  Site* sites;
  Saved* log;
} Launch;
_Static_assert(sizeof(Launch) <= RECORD, "Python's record is shorter");

static inline f32 f32_of(u32 x) {
  f32 y;
  memcpy(&y, &x, 4);
  return y;
}
static inline f64 f64_of(u64 x) {
  f64 y;
  memcpy(&y, &x, 8);
  return y;
}
static inline u32 bits_of_f32(f32 x) {
  u32 y;
  memcpy(&y, &x, 4);
  return y;
}
static inline u64 bits_of_f64(f64 x) {
  u64 y;
  memcpy(&y, &x, 8);
  return y;
}
#define WHOLE(type, low, high) \
  static inline type whole_##type(f64 x) { return x >= low && x < high ? (type)x : 0; }
WHOLE(i8, -128.0, 128.0)
WHOLE(u8, 0.0, 256.0)
WHOLE(i16, -32768.0, 32768.0)
WHOLE(u16, 0.0, 65536.0)
WHOLE(i32, -2147483648.0, 2147483648.0)
WHOLE(u32, 0.0, 4294967296.0)
WHOLE(i64, -0x1p63, 0x1p63)
WHOLE(u64, 0.0, 0x1p64)

static inline f64 fraction_of(f64 x) {
  int e;
  return __builtin_frexp(x, &e);
}
static inline i32 exponent_of(f64 x) {
  int e = 0;
  __builtin_frexp(x, &e);
  return e;
}

static inline f32 half_to_single(u16 h) {
  u32 sign = (u32)(h & 0x8000) << 16, rest = h & 0x7fff;
  if (rest >= 0x7c00) return f32_of(sign | 0x7f800000 | (rest & 0x3ff) << 13);
  f32 x = f32_of(rest << 13) * 0x1p112f; /* subnormals too */
  return f32_of(bits_of_f32(x) | sign);
}

static inline u16 double_to_half(f64 x) {
  u64 bits = bits_of_f64(x);
  u16 sign = bits >> 48 & 0x8000;
  f64 size = __builtin_fabs(x);
  if (size != size) return sign | 0x7e00 | (bits >> 42 & 0x3ff);
  if (size >= 65520.0) return sign | 0x7c00;
  if (size < 0x1p-14) return sign | (u16)__builtin_rint(size * 0x1p24);
  u64 rest = bits & 0x7fffffffffffffffull;
  rest += 0x1ffffffffffull + (rest >> 42 & 1); /* to nearest, ties to even */
  return sign | (u16)((rest >> 42) - ((1023ull - 15) << 10));
}

static inline u32 canonical_f32(f32 x) { return x != x ? 0x7fffffff : bits_of_f32(x); }
static inline u32 fma_f32(u32 a, u32 b, u32 c) {
  return canonical_f32(__builtin_fmaf(f32_of(a), f32_of(b), f32_of(c)));
}
static inline u64 fma_f64(u64 a, u64 b, u64 c) {
  f64 x = f64_of(a), y = f64_of(b), z = f64_of(c), r = __builtin_fma(x, y, z);
  if (r == r) return bits_of_f64(r);
  if (y != y) return b | 1ull << 51;
  if (z != z) return c | 1ull << 51;
  return x != x ? a | 1ull << 51 : 0xfff8000000000000ull;
}

static f64 numpy_loop(const Launch* c, int which, f64 x) {
  f64 y;
  char* arguments[2] = {(char*)&x, (char*)&y};
  const intptr_t one[1] = {1}, steps[2] = {8, 8};
  c->loops[which](arguments, one, steps, c->loop_data[which]);
  return y;
}

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

static RARE int save(Launch* c, Site s, u64 at) {
  u8* flag = s.saved + at / PAGE;
  if (*flag) return 0; /* read-only, at least in part */
  u64 start = at & ~(u64)(PAGE - 1), end = start + PAGE;
  if (start < s.base) start = s.base;
  if (end > s.end) end = s.end;
  Saved* page = malloc(sizeof *page + (end - start));
  if (!page) return 0;
  *page = (Saved){.next = c->log, .at = start, .size = end - start};
  memcpy(page->bytes, (u8*)start, page->size);
  c->log = page;
  *flag = 1;
  return 1;
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

/* An aligned address plus n - 1 cannot wrap around. */
static inline u8* shared_at(Launch* c, u64 at, u64 n, int writes) {
  if (__builtin_expect(at & (n - 1) || at + n - 1 >= c->shared_size, 0)) return 0;
  if (__builtin_expect(c->unwritten != 0, 0) && !define(c, at, n, writes)) return 0;
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

/* Look now and then whether the launch is to go on. A function that does nothing lets Python do
   what it does between any two: run other threads, handlers of signals, raise what it was asked to.
 */
static int poll(Launch* c) {
  if (c->deadline) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec + now.tv_nsec * 1e-9 > c->deadline) {
      c->why = STUCK;
      return 1;
    }
  }
  void* result = c->call(c->nothing);
  if (!result) {
    c->why = INTERRUPTED;
    return 1;
  }
  c->release(result);
  return 0;
}

/* Count work, and poll after much of it. */
static inline int works(Launch* c, u32 amount) {
  c->work += amount;
  if (c->work <= POLL_EVERY) return 0;
  c->work = 0;
  return poll(c);
}

#if STOPS == 0
#define LEAVE(state) goto next
#else
#define LEAVE(state)  \
  do {                \
    c->work += turns; \
    return state;     \
  } while (0)
static int run_thread(Launch* c, Thread* t);
#endif
#define LEAVE_GROUP(state) \
  do {                     \
    c->work += turns * 16; \
    return state;          \
  } while (0)
static int run_group(Launch* c, Thread* lead);

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

/* Let threads go on whose barrier is complete. */
static inline int release_barriers_of(Launch* c, const int apart) {
  u32 arrived[16] = {0}, votes[16] = {0}, waiting = 0, done = 0;
  const Thread* first[16];
  for (Thread* t = c->all; t < c->all + c->threads; t += apart ? 1 : t->group) {
    if (t->state != AT_BARRIER) continue;
    u32 number = t->bar & 15;
    if (!arrived[number]) first[number] = t;
    arrived[number] += apart ? 1 : t->group;
    if (t->bar > 15 || t->where != first[number]->where || t->count != first[number]->count)
      return 0;
    votes[number] += t->vote != 0;
    waiting |= 1u << number;
  }
  for (; waiting; waiting &= waiting - 1) {
    u32 number = __builtin_ctz(waiting), count = first[number]->count;
    if (arrived[number] != (count ? count : c->live)) continue;
    if (!count && c->late) return 0; /* a thread may have left that should be here */
    done |= 1u << number;
  }
  for (Thread* t = c->all; done && t < c->all + c->threads; t += apart ? 1 : t->group) {
    if (t->state != AT_BARRIER || !(done >> t->bar & 1)) continue;
    t->state = READY;
    u32 all = arrived[t->bar], yes = votes[t->bar];
    t->y = t->what == ADD ? yes : t->what == AND ? yes == all : yes > 0;
  }
  return done != 0;
}

static int release_barriers(Launch* c) {
  return c->together ? release_barriers_of(c, 0) : release_barriers_of(c, 1);
}

#if STOPS == 0
static int run_threads(Launch* c, Thread* t, Thread* end);

static int run_block(Launch* c) {
  if (LOCAL) memset(c->all[0].local, 0, c->local_size * c->threads);
  if (works(c, 16 * c->threads)) return c->why;
  for (Thread *t = c->all, *next; t < c->all + c->threads; t = next) {
    next = t + t->group;
    int state = t->group > 1 ? run_group(c, t) : LEFT;
    if (state == LEFT) {
      /* Single threads that follow each other run in one loop. */
      while (t->group == 1 && next < c->all + c->threads && next->group == 1) ++next;
      state = run_threads(c, t, next) ? ABANDONED : DONE;
    } else
      ++c->groups;
    if (state == ALONE) return APART;
    if (state == ABANDONED) return c->why ? c->why : UNUSUAL;
  }
  return DONE;
}
#else
/* Run the groups that are ready. */
static int run_groups(Launch* c) {
  for (Thread *t = c->all, *next; t < c->all + c->threads; t = next) {
    next = t + t->group;
    if (t->group == 1 || t->state != READY) continue;
    int state = run_group(c, t);
    if (state == ALONE) return APART;
    if (state == ABANDONED) return c->why ? c->why : UNUSUAL;
    t->state = state;
    c->together -= state != AT_BARRIER;
    if (state == LEFT)
      for (Thread* each = t; each < next; ++each) {
        each->group = 1;
        each->state = READY;
      }
    else if (state >= EXITED) {
      ++c->groups;
      c->live -= t->group;
      c->late |= state == EXITED_LATE;
      for (Thread* each = t; each < next; ++each) each->state = EXITED;
    }
    if (works(c, 16 * (next - t))) return c->why;
  }
  return DONE;
}

static int run_block(Launch* c) {
  for (Thread* t = c->all; t < c->all + c->threads; ++t) {
    t->pc = 0;
    t->group = t->first;
    t->state = t->first ? READY : LED;
  }
  if (c->local_size) memset(c->all[0].local, 0, c->local_size * c->threads);
  for (u32 yields = 0; c->live;) {
    int yielded = 0, failed = c->together ? run_groups(c) : DONE;
    if (failed) return failed;
    for (u32 start = 0; start < c->threads; start += 32) {
      u32 lanes = c->threads - start < 32 ? c->threads - start : 32;
      Thread* warp = c->all + start;
      int released;
      do {
        for (u32 i = 0; i < lanes; ++i) {
          Thread* t = &warp[i];
          if (t->state != READY) continue;
          int state = run_thread(c, t);
          if (state == ABANDONED) return c->why ? c->why : UNUSUAL;
          t->state = state;
          if (state >= EXITED) {
            --c->live;
            c->late |= state == EXITED_LATE;
          }
          yielded |= state == YIELDED;
          if (works(c, 16)) return c->why;
        }
        released = release_warp(warp, lanes);
        if (released < 0) return UNUSUAL;
      } while (released);
    }
    if (!c->live) break;
    if (release_barriers(c)) continue;
    if (!yielded || ++yields > MOST_YIELDS) return STUCK;
    for (u32 i = 0; i < c->threads; ++i)
      if (c->all[i].state == YIELDED) c->all[i].state = READY;
  }
  return DONE;
}

#endif

/* Shared memory is new in each block. */
static int run_new_block(Launch* c) {
  c->live = c->threads;
  c->late = 0;
  c->together = c->formed;
  c->unwritten = c->checks ? c->shared_size : 0;
  if (c->shared_size) memset(c->shared, 0, c->shared_size);
  if (c->unwritten) memset(c->written, 0, c->shared_size);
  return run_block(c);
}

static int run_grid(Launch* c) {
  int result = DONE;
  for (u32 z = 0; z < c->grid[2] && result == DONE; ++z)
    for (u32 y = 0; y < c->grid[1] && result == DONE; ++y)
      for (u32 x = 0; x < c->grid[0] && result == DONE; ++x) {
        c->ctaid[0] = x;
        c->ctaid[1] = y;
        c->ctaid[2] = z;
        result = run_new_block(c);
      }
  return result;
}

/* Put back what the launch has written. */
static void put_back(const Launch* c) {
  for (const Saved* page = c->log; page; page = page->next)
    memcpy((u8*)page->at, page->bytes, page->size);
}

/* Threads in groups: up to GROUP neighbors along x, a multiple of 16. */
static void form_groups(Launch* c) {
  u32 left = 0;
  c->formed = 0;
  for (Thread* t = c->all; t < c->all + c->threads; ++t) {
    t->first = 0;
    if (!left) {
      u32 row = c->block[0] - t->tid[0], wide = (row < GROUP ? row : GROUP) & ~15u;
      t->first = left = c->apart || !wide ? 1 : wide;
    }
    c->formed += t->first > 1;
    t->group = t->first;
    t->pc = 0;
    --left;
  }
}

int culaunch_run(Launch* c) {
  int result = DONE;
  c->threads = c->block[0] * c->block[1] * c->block[2];
  c->all = calloc(c->threads, sizeof *c->all);
  c->sites = calloc(SITES + 1, sizeof *c->sites);
  c->shared = malloc(c->shared_size + 16);
  c->written = malloc(c->shared_size + 16);
  c->stored = malloc((c->threads / 16 + 1) * sizeof *c->stored);
  u8* local = malloc(c->local_size * c->threads + 16);
  if (!c->all || !c->sites || !c->shared || !c->written || !c->stored || !local)
    result = NO_MEMORY;
  else
    for (u32 i = 0; i < c->threads; ++i) {
      Thread* t = &c->all[i];
      t->lane = i % 32;
      t->warp = i / 32;
      t->tid[0] = i % c->block[0];
      t->tid[1] = i / c->block[0] % c->block[1];
      t->tid[2] = i / c->block[0] / c->block[1];
      t->local = local + i * c->local_size;
    }
  if (result == DONE) {
    form_groups(c);
    result = run_grid(c);
  }
  if (result == APART) {
    /* What groups do not do is rare. The saved pages stay saved. */
    put_back(c);
    c->apart = 1;
    form_groups(c);
    result = run_grid(c);
  }
  if (result != DONE && result != INTERRUPTED) put_back(c);
  for (Saved *page = c->log, *next; page; page = next) {
    next = page->next;
    free(page);
  }
  free(c->all);
  free(c->sites);
  free(c->shared);
  free(c->written);
  free(c->stored);
  free(local);
#ifdef __AVX__
  /* Code without vectors of this size is slow while their upper halves are in use. */
  __builtin_ia32_vzeroupper();
#endif
  return result;
}
