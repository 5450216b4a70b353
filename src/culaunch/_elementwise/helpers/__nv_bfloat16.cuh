struct __nv_bfloat16 {
  unsigned short bits;
};
