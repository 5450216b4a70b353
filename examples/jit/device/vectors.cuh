#pragma once

#include "numbers.h"

template <class T, int N>
struct alignas(sizeof(T) * N) Vector {
  T items[N];
};
