#include <math.h>

/* Whether a variant of a tuned row runs on the device; without a device every one does. */
static int culaunch_row_runs(const int *variants, int capability) {
  for (; *variants >= 0; ++variants) {
    if (capability == 0 || culaunch_device_fits(&culaunch_variants[*variants], capability))
      return 1;
  }
  return 0;
}

static double culaunch_far(const char *own_device, int own, const char *device, int capability) {
  if (own_device[0] != 0 && strcmp(own_device, device) == 0) return 0;
  if (own == capability) return 1;
  if (own == 0) return 2;
  return own < capability ? 1000 + (capability - own) : 2000 + (own - capability);
}

static double culaunch_apart(int64_t saved, int64_t given) {
  if (given >= 0 && saved >= 0) return fabs(log2((double)saved + 1) - log2((double)given + 1));
  return given == saved ? 0 : 1e3;
}
