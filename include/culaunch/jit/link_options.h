// What culaunch::Jit::Link is given.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "../version.h"
#include "store/image.h"

CULAUNCH_NAMESPACE_BEGIN

// One input of a link: an image, or a file, which is an image, a host object with device code or a
// static library of such objects (libcudadevrt.a).
struct LinkInput {
  LinkInput(Image one) : image(std::move(one)) {}
  static LinkInput File(std::string path) {
    LinkInput input{Image()};
    input.path = std::move(path);
    return input;
  }

  Image image;
  std::string path;
};

// They mean what the keywords of Python's culaunch.link mean, and give the same keys.
struct LinkOptions {
  // "sm_90a", several for a fatbin; "compute_90" for PTX, if every image is LTO-IR. Without any,
  // the architecture of the device in use.
  std::vector<std::string> arch;
  bool line_info = false;
  bool debug = false;
  int maxrregcount = 0;                         // the most registers that a thread may use; 0: free
  std::vector<std::string> extra_options = {};  // anything else that nvJitLink takes, as it is
};

CULAUNCH_NAMESPACE_END
