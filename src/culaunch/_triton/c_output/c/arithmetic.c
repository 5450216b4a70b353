/* What a number of the expressions is beyond: the call is refused. */
static int64_t culaunch_fail(int *failed) {
  *failed = 1;
  return 0;
}

static int64_t culaunch_add(int64_t a, int64_t b, int *failed) {
  if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b) return culaunch_fail(failed);
  return a + b;
}

static int64_t culaunch_subtract(int64_t a, int64_t b, int *failed) {
  if (b < 0 ? a > INT64_MAX + b : a < INT64_MIN + b) return culaunch_fail(failed);
  return a - b;
}

static int64_t culaunch_multiply(int64_t a, int64_t b, int *failed) {
  int is_large;
  if (a == 0 || b == 0) return 0;
  if (a > 0)
    is_large = b > 0 ? a > INT64_MAX / b : b < INT64_MIN / a;
  else
    is_large = b > 0 ? a < INT64_MIN / b : b < INT64_MAX / a;
  return is_large ? culaunch_fail(failed) : a * b;
}

/* Rounded down, as in Python. */
static int64_t culaunch_divide(int64_t a, int64_t b, int *failed) {
  if (b == 0 || (a == INT64_MIN && b == -1)) return culaunch_fail(failed);
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* Of the divisor's sign, as in Python. */
static int64_t culaunch_modulo(int64_t a, int64_t b, int *failed) {
  int64_t rest;
  if (b == 0) return culaunch_fail(failed);
  if (b == -1) return 0;
  rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static int64_t culaunch_shift_left(int64_t a, int64_t count, int *failed) {
  if (count < 0 || count > 63) return culaunch_fail(failed);
  if (a == 0) return 0;
  if (count == 63) return a == -1 ? INT64_MIN : culaunch_fail(failed);
  return culaunch_multiply(a, INT64_C(1) << count, failed);
}

static int64_t culaunch_shift_right(int64_t a, int64_t count, int *failed) {
  if (count < 0 || count > 63) return culaunch_fail(failed);
  return a >= 0 ? a >> count : ~(~a >> count);
}

static int64_t culaunch_negate(int64_t a, int *failed) {
  return a == INT64_MIN ? culaunch_fail(failed) : -a;
}

static int64_t culaunch_absolute(int64_t a, int *failed) {
  return a < 0 ? culaunch_negate(a, failed) : a;
}

static int64_t culaunch_cdiv(int64_t a, int64_t b, int *failed) {
  return culaunch_add(culaunch_divide(culaunch_subtract(a, 1, failed), b, failed), 1, failed);
}

static int64_t culaunch_next_power_of_2(int64_t a, int *failed) {
  int64_t power = 1;
  if (a <= 0) return 0;
  if (a > INT64_C(1) << 62) return culaunch_fail(failed);
  while (power < a) power *= 2;
  return power;
}

static int64_t culaunch_least(int64_t a, int64_t b) { return b < a ? b : a; }

static int64_t culaunch_most(int64_t a, int64_t b) { return b > a ? b : a; }

static double culaunch_least_float(double a, double b) { return b < a ? b : a; }

static double culaunch_most_float(double a, double b) { return b > a ? b : a; }

/* Exactly, or not at all. */
static double culaunch_float(int64_t a, int *failed) {
  if (a > INT64_C(9007199254740992) || a < -INT64_C(9007199254740992)) culaunch_fail(failed);
  return (double)a;
}

static int64_t culaunch_int(double a, int *failed) {
  if (!(a > -9223372036854775808.0 && a < 9223372036854775808.0)) return culaunch_fail(failed);
  return (int64_t)a;
}

static double culaunch_quotient(double a, double b, int *failed) {
  if (b == 0) return (double)culaunch_fail(failed);
  return a / b;
}

static int64_t culaunch_unsigned(uint64_t a, int *failed) {
  return a > INT64_MAX ? culaunch_fail(failed) : (int64_t)a;
}
