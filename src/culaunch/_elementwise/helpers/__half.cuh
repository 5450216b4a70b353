struct __half {
  unsigned short bits;
};
