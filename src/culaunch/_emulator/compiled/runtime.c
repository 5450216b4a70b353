/* The run of a launch: groups, threads, barriers and blocks. */

/* Look now and then whether the launch is to go on. A function that does nothing lets Python do
   what it does between any two: run other threads, handlers of signals, raise what it was asked to.
 */
static int poll(Launch* c) {
  if (c->crew && __atomic_load_n(&c->crew->result, __ATOMIC_RELAXED) != DONE) {
    c->why = c->crew->result;
    return 1;
  }
  if (c->joined) return 0; /* Python's lock belongs to the first thread */
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
  c->worked += c->work;
  c->work = 0;
  return poll(c);
}

#if ORDERED
#define CURRENT(t) c->current = t - c->all + 1
enum { MOST_EPOCHS = 1 << 21 };
#else
#define CURRENT(t)
#endif

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
static u32 gather(Launch* c, Thread* lead); /* where a group goes on, or 0 */

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
    /* A barrier of some threads leaves their order with the others open, even with exited ones. */
    c->epoch += !count || count == c->threads;
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

/* Let threads that left their group, and have all passed one barrier, run side by side again. */
static void rejoin(Launch* c) {
  for (Thread *t = c->all, *next; t < c->all + c->threads; t = next) {
    next = t + t->first;
    if (t->group > 1 || t->first == 1 || t->state != READY) continue;
    Thread* same = t + 1;
    while (same < next && same->state == READY && same->pc == t->pc) ++same;
    u32 pc = same == next ? gather(c, t) : 0;
    if (!pc) continue;
    t->pc = pc;
    t->group = t->first;
    ++c->together;
    for (Thread* each = t + 1; each < next; ++each) {
      each->group = 0;
      each->state = LED;
    }
  }
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
          CURRENT(t);
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
    if (release_barriers(c)) {
#if ORDERED
      if (c->epoch >= MOST_EPOCHS) return UNUSUAL;
#endif
      if (c->together < c->formed) rejoin(c);
      continue;
    }
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
#if ORDERED
  if (++c->epoch >= MOST_EPOCHS / 2 || c->epoch == 1) {
    memset(c->touched, 0, (c->shared_size / 4 + 1) * sizeof *c->touched);
    c->epoch = 1;
  }
#endif
  return run_block(c);
}

static int run_block_at(Launch* c, u64 index) {
  c->ctaid[0] = index % c->grid[0];
  c->ctaid[1] = index / c->grid[0] % c->grid[1];
  c->ctaid[2] = index / c->grid[0] / c->grid[1];
  return run_new_block(c);
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

/* The memory of one of the processor's threads, for one block at a time. */
static int prepare(Launch* c) {
  c->all = calloc(c->threads, sizeof *c->all);
  c->sites = calloc(SITES + 1, sizeof *c->sites);
  c->shared = malloc(c->shared_size + 16);
  c->written = malloc(c->shared_size + 16);
  c->stored = malloc((c->threads / 16 + 1) * sizeof *c->stored);
  c->local = malloc(c->local_size * c->threads + 16);
  c->touched = malloc(ORDERED ? (c->shared_size / 4 + 1) * sizeof *c->touched : 1);
  c->epoch = 0;
  if (!c->all || !c->sites || !c->shared || !c->written || !c->stored || !c->local || !c->touched)
    return 0;
  for (u32 i = 0; i < c->threads; ++i) {
    Thread* t = &c->all[i];
    t->lane = i % 32;
    t->warp = i / 32;
    t->tid[0] = i % c->block[0];
    t->tid[1] = i / c->block[0] % c->block[1];
    t->tid[2] = i / c->block[0] / c->block[1];
    t->local = c->local + i * c->local_size;
  }
  form_groups(c);
  return 1;
}

static void discard(Launch* c) {
  free(c->all);
  free(c->sites);
  free(c->shared);
  free(c->written);
  free(c->stored);
  free(c->local);
  free(c->touched);
}

static void run_blocks(Launch* c) {
  Crew* crew = c->crew;
  while (__atomic_load_n(&crew->result, __ATOMIC_RELAXED) == DONE) {
    u64 index = __atomic_fetch_add(&crew->next, 1, __ATOMIC_RELAXED);
    if (index >= crew->blocks) break;
    u32 done = DONE, result = run_block_at(c, index);
    if (result != DONE)
      __atomic_compare_exchange_n(&crew->result, &done, result, 0, __ATOMIC_RELAXED,
                                  __ATOMIC_RELAXED);
  }
}

static void* join_in(void* given) {
  Launch* c = given;
  if (prepare(c)) run_blocks(c); /* without memory, the others do it all */
  discard(c);
  __atomic_fetch_sub(&c->crew->running, 1, __ATOMIC_RELEASE);
  return 0;
}

/* Run the rest of a grid on several of the processor's threads. */
static int run_shared(Launch* c, u64 first, u64 blocks) {
  enum { MOST = 64 };
  u64 wanted = c->cores < blocks - first ? c->cores : blocks - first;
  u32 others = (wanted < MOST ? wanted : MOST) - 1;
  Crew crew = {.next = first, .blocks = blocks};
  pthread_t threads[MOST];
  Launch* copies = malloc(others * sizeof *copies);
  pthread_mutex_init(&crew.lock, 0);
  c->crew = &crew;
  u32 started = 0;
  for (; copies && started < others; ++started) {
    Launch* own = &copies[started];
    *own = *c;
    own->joined = 1;
    own->log = 0;
    own->work = own->groups = 0;
    __atomic_fetch_add(&crew.running, 1, __ATOMIC_RELAXED);
    if (pthread_create(&threads[started], 0, join_in, own)) break;
  }
  if (started < others) __atomic_fetch_sub(&crew.running, copies != 0, __ATOMIC_RELAXED);
  c->used = started + 1;
  run_blocks(c);
  while (__atomic_load_n(&crew.running, __ATOMIC_ACQUIRE)) {
    u32 done = DONE;
    nanosleep(&(struct timespec){.tv_nsec = 200000}, 0);
    if (!__atomic_load_n(&crew.result, __ATOMIC_RELAXED) && poll(c))
      __atomic_compare_exchange_n(&crew.result, &done, c->why, 0, __ATOMIC_RELAXED,
                                  __ATOMIC_RELAXED);
  }
  for (u32 i = 0; i < started; ++i) {
    pthread_join(threads[i], 0);
    c->groups += copies[i].groups;
    Saved** end = &copies[i].log;
    while (*end) end = &(*end)->next;
    *end = c->log;
    c->log = copies[i].log;
  }
  free(copies);
  pthread_mutex_destroy(&crew.lock);
  c->crew = 0;
  return crew.result;
}

static int run_grid(Launch* c) {
  u64 blocks = (u64)c->grid[0] * c->grid[1] * c->grid[2];
  for (u64 index = c->begin; index < blocks; ++index) {
    /* Threads cost more than a short launch. */
    if (c->cores > 1 && blocks - index > 1 && c->worked + c->work >= c->alone)
      return run_shared(c, index, blocks);
    int result = run_block_at(c, index);
    if (result != DONE) return result;
  }
  return DONE;
}

int culaunch_run(Launch* c) {
  c->threads = c->block[0] * c->block[1] * c->block[2];
  c->used = 1;
  c->apart |= c->watches;
  int result = prepare(c) ? run_grid(c) : NO_MEMORY;
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
  discard(c);
#ifdef __AVX__
  /* Code without vectors of this size is slow while their upper halves are in use. */
  __builtin_ia32_vzeroupper();
#endif
  return result;
}
