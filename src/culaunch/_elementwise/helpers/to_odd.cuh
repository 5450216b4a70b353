// Convert to float, with the lost bits kept in the last bit: a second rounding rounds correctly.
__device__ float to_odd(double x) {
  const float down = __double2float_rz(x);
  return (double)down == x || x != x ? down : __int_as_float(__float_as_int(down) | 1);
}
