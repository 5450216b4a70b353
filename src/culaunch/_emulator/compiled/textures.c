/* Reads of textures, as memory/texture.py computes them. Python has prepared the texels as words.
 */
#if TEXTURES

static const Texture* texture_of(const Launch* c, u64 handle) {
  for (const Texture* x = c->textures; x < c->textures + c->texture_count; ++x)
    if (x->handle == handle) return x;
  return 0;
}

static inline u32 read_channel(const Texture* x, const u8* at) {
  u32 word = 0;
  i32 value;
  memcpy(&word, at, x->width);
  if (x->width == 4) return word;
  value = word;
  if (x->is_signed) value = x->width == 1 ? (i8)word : (i16)word;
  if (!x->scale) return value;
  f32 part = value / x->scale;
  if (part < -1) part = -1;
  memcpy(&word, &part, 4);
  return word;
}

static inline void read_texel(const Texture* x, const i64* place, u32* words) {
  const u8* texel = x->texels + place[2] * x->slice + place[1] * x->row;
  texel += place[0] * x->channels * x->width;
  for (u32 i = 0; i < 4; ++i)
    words[i] = i < x->channels ? read_channel(x, texel + i * x->width) : 0;
}

static inline i64 modulo(i64 a, i64 b) { return a % b + (a % b < 0 ? b : 0); }

/* The words of a texel, whose numbers the address modes make valid. */
static inline void read_texel_near(const Texture* x, u32 axes, const f64* point, u32* words) {
  enum { WRAP, CLAMP, MIRROR, BORDER };
  i64 place[3] = {0};
  int outside = 0;
  for (u32 k = 0; k < axes; ++k) {
    i64 at = (i64)point[k], size = x->size[k];
    if (x->mode[k] == WRAP) at = modulo(at, size);
    if (x->mode[k] == MIRROR) {
      at = modulo(at, 2 * size);
      if (at >= size) at = 2 * size - 1 - at;
    }
    outside |= x->mode[k] == BORDER && (at < 0 || at >= size);
    place[k] = at < 0 ? 0 : at < size ? at : size - 1;
  }
  if (outside)
    memcpy(words, x->border_words, 16);
  else
    read_texel(x, place, words);
}

static void read_texel_at(const Texture* x, u32 axes, const u32* at, u32* words) {
  i64 place[3] = {0};
  memset(words, 0, 16);
  for (u32 k = 0; k < axes; ++k) {
    place[k] = (i32)at[k];
    if (place[k] < 0 || place[k] >= x->size[k]) return;
  }
  read_texel(x, place, words);
}

static inline void blend(const Texture* x, u32 axes, const f64* point, u32* words) {
  f64 low[3], part[3], total[4] = {0};
  for (u32 k = 0; k < axes; ++k) {
    low[k] = __builtin_floor(point[k]);
    part[k] = __builtin_floor((point[k] - low[k]) * 256 + 0.5) / 256;
  }
  for (u32 corner = 0; corner < 1u << axes; ++corner) {
    f64 weight = 1, at[3];
    for (u32 k = 0; k < axes; ++k) {
      u32 step = corner >> (axes - 1 - k) & 1; /* the last axis is the first to change */
      weight *= step ? part[k] : 1 - part[k];
      at[k] = low[k] + step;
    }
    if (weight == 0) continue; /* it may be a NaN */
    u32 texel[4];
    f32 value[4];
    read_texel_near(x, axes, at, texel);
    memcpy(value, texel, 16);
    for (u32 i = 0; i < 4; ++i) total[i] += (f64)value[i] * weight;
  }
  f32 result[4];
  for (u32 i = 0; i < 4; ++i) {
    /* As an H200 reads a row of texels at y = 0, halfway between the row and the border. */
    if (axes == 1 && x->halves) total[i] = (total[i] + x->border[i]) / 2;
    result[i] = total[i];
  }
  memcpy(words, result, 16);
}

/* Read a place of one to three coordinates: floats, or integers that name a texel. */
static inline __attribute__((always_inline)) int read_texture(const Launch* c, u64 handle, u32 axes,
                                                              int is_float, const u32* at,
                                                              u32* words) {
  const f64 far = 2147483648.0;
  const Texture* x = texture_of(c, handle);
  if (!x) return 0;
  if (!is_float) {
    read_texel_at(x, axes, at, words);
    return 1;
  }
  f64 point[3];
  for (u32 k = 0; k < axes; ++k) {
    f32 given;
    memcpy(&given, &at[k], 4);
    f64 value = x->normalized ? given * (f64)x->size[k] : given;
    value = value != value ? 0 : value < -far ? -far : value > far ? far : value;
    point[k] = x->linear ? value - 0.5 : __builtin_floor(value);
  }
  if (x->linear)
    blend(x, axes, point, words);
  else
    read_texel_near(x, axes, point, words);
  return 1;
}

/* Of each number of coordinates, once in the text. */
#define READ_TEXTURE(axes)                                                    \
  static __attribute__((noinline)) int read_texture_##axes(                   \
      const Launch* c, u64 handle, int is_float, const u32* at, u32* words) { \
    return read_texture(c, handle, axes, is_float, at, words);                \
  }
READ_TEXTURE(1)
READ_TEXTURE(2)
READ_TEXTURE(3)
#endif
