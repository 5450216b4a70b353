/* The kernels of emulator.py as loops in C: what a compiler makes of them on one core. */
#include <math.h>
#include <string.h>

void add(float* z, const float* x, const float* y, int n) {
  for (int i = 0; i < n; ++i) z[i] = x[i] + y[i];
}

void matmul(float* c, const float* a, const float* b, int n) {
  for (int row = 0; row < n; row += 16)
    for (int column = 0; column < n; column += 16) {
      float left[16][16], right[16][16], sum[16][16];
      memset(sum, 0, sizeof sum);
      for (int k = 0; k < n; k += 16) {
        for (int y = 0; y < 16; ++y)
          for (int x = 0; x < 16; ++x) {
            left[y][x] = a[(row + y) * n + k + x];
            right[y][x] = b[(k + y) * n + column + x];
          }
        for (int y = 0; y < 16; ++y)
          for (int x = 0; x < 16; ++x)
            for (int i = 0; i < 16; ++i) sum[y][x] += left[y][i] * right[i][x];
      }
      for (int y = 0; y < 16; ++y)
        for (int x = 0; x < 16; ++x) c[(row + y) * n + column + x] = sum[y][x];
    }
}

void mandelbrot(int* count, int n, int limit) {
  for (int i = 0; i < n * n; ++i) {
    float cr = -2.0f + 3.0f * (i % n) / n, ci = -1.5f + 3.0f * (i / n) / n, r = 0, s = 0;
    int k = 0;
    for (; k < limit && r * r + s * s <= 4; ++k) {
      float t = r * r - s * s + cr;
      s = 2 * r * s + ci;
      r = t;
    }
    count[i] = k;
  }
}

void histogram(int* bins, const unsigned char* x, int n) {
  for (int i = 0; i < n; ++i) ++bins[x[i]];
}

void nbody(float* force, const float* body, int n) {
  for (int i = 0; i < n; ++i) {
    float x = 0, y = 0, z = 0;
    for (int j = 0; j < n; ++j) {
      const float *p = body + 4 * i, *q = body + 4 * j;
      float dx = q[0] - p[0], dy = q[1] - p[1], dz = q[2] - p[2];
      float inverse = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
      float scale = q[3] * inverse * inverse * inverse;
      x += dx * scale;
      y += dy * scale;
      z += dz * scale;
    }
    force[3 * i] = x;
    force[3 * i + 1] = y;
    force[3 * i + 2] = z;
  }
}

void attention(float* out, const float* q, const float* k, const float* v, int n) {
  for (int i = 0; i < n; ++i) {
    float most = -1e30f, sum = 0, row[64] = {0};
    for (int j = 0; j < n; ++j) {
      float score = 0;
      for (int d = 0; d < 64; ++d) score += q[i * 64 + d] * k[j * 64 + d];
      score *= 0.125f * 1.44269504f;
      float now = fmaxf(score, most), old = exp2f(most - now), weight = exp2f(score - now);
      sum = sum * old + weight;
      for (int d = 0; d < 64; ++d) row[d] = row[d] * old + weight * v[j * 64 + d];
      most = now;
    }
    for (int d = 0; d < 64; ++d) out[i * 64 + d] = row[d] / sum;
  }
}
