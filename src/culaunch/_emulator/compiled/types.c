/* What every compiled kernel shares: memory with its checks, warps, barriers, and the way back.

A launch is a transaction. Each page of memory is saved before it is first written. Whatever is
wrong, or only unusual, ends the launch: the pages are put back, and the NumPy engine runs it from
the start. So this code never reports a fault, it only has to notice one. */
#include <pthread.h>
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
  u32 writer, reader; /* of a word of shared memory: the epoch, and a thread's number and 1 */
} Touched;
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
  u64 handle;
  const u8* texels;
  u64 row, slice; /* bytes from one to the next */
  i64 size[3];
  u32 channels, width; /* the bytes of a channel */
  u32 is_signed;
  f32 scale; /* the integer that reads return as 1; 0: they return words, or integers */
  u32 mode[3], normalized, linear;
  u32 halves; /* whether linear filters of one axis blend half of the border in */
  f32 border[4];
  u32 border_words[4];
} Texture;
typedef struct {
  u64 next, blocks;     /* the next block to run, and how many there are */
  u32 result, running;  /* the first result that is not DONE; threads besides the first */
  pthread_mutex_t lock; /* of the pages */
} Crew;                 /* the processor's threads that share a grid */
typedef struct {
  u64 ranges;
  const u64 *bases, *ends, *pages; /* memory, and where its pages begin in `saved` */
  u8* saved;                       /* 1: the page was saved; 2: it is read-only */
  const u8* params;
  u64 params_size;
  const u64* symbols;
  u32 grid[3], block[3];
  u64 begin; /* the first block to run */
  u64 shared_size, local_size;
  u32 checks;
  const Loop* loops;
  void* const* loop_data;
  void* (*call)(void*);
  void (*release)(void*);
  void* nothing; /* a function of Python */
  f64 deadline;  /* of the monotonic clock; 0: none */
  u64 alone;     /* work of the first of the processor's threads before others join it */
  u32 cores;     /* how many of them may run blocks */
  u64 groups;    /* that ran to their end side by side */
  u32 apart;     /* whether all threads run one after the other */
  u32 used;      /* how many of the processor's threads ran blocks */
  u32 watches; /* whether an access to shared memory that depends on the order of threads ends it */
  const Texture* textures;
  u64 texture_count;
  /* Below is the run's own. */
  u32 ctaid[3], threads, live, late, work, why;
  u32 together, formed; /* the groups of a block: now, and at first */
  u32 epoch, current;   /* the barriers of the block since `touched` was new; the thread and 1 */
  u32 joined;           /* whether it is a copy for another of the processor's threads */
  u64 unwritten, worked;
  u8 *shared, *written, *local;
  Stored* stored;
  Touched* touched;
  Thread* all;
  Site* sites;
  Saved* log;
  Crew* crew;
} Launch;
_Static_assert(sizeof(Launch) <= RECORD, "Python's record is shorter");
