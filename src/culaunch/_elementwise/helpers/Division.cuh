// A division by a number that is known before the launch: quotients of indices below 2^31.
struct Division {
  unsigned divisor, factor, shift;
  __device__ unsigned operator()(unsigned index) const {
    return (__umulhi(index, factor) + index) >> shift;
  }
};
