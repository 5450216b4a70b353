// Whether the calls of this thread are followed (followed_calls.h).
#pragma once

#include <utility>

inline thread_local bool is_followed = false;

// Suspends following in a block.
class NotFollowed {
 public:
  NotFollowed() : was_(std::exchange(is_followed, false)) {}
  NotFollowed(const NotFollowed&) = delete;
  NotFollowed& operator=(const NotFollowed&) = delete;
  ~NotFollowed() { is_followed = was_; }

 private:
  bool was_;
};
