/* Conversions and operations of values, with the bits that NumPy gives. */

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
