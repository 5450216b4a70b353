#include <pthread.h>
#include <stddef.h>
#include <string.h>

typedef struct {
  const unsigned char *image;
  const char *name;
  int capability; /* 10 major + minor */
  char rule;      /* A: that device alone, M: of that major and newer, P: PTX */
  unsigned threads, ctas, shared;
  size_t global_scratch, profile_scratch; /* bytes for each block */
  int cooperative, programmatic;
  CUlibrary library; /* null before the first launch */
  CUkernel kernel;
  uint64_t prepared; /* a bit for each device */
} culaunch_variant;
