// culaunch::Image: a compiled image, with the names and signatures that its bytes do not contain.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "../../module.h"
#include "../../version.h"

CULAUNCH_NAMESPACE_BEGIN

// A cubin, a fatbin or PTX. Its functions are part of <culaunch/jit/implementation.h>.
struct Image {
  // The types of a kernel's parameters; an empty type is unknown.
  using Signature = std::vector<std::string>;

  std::string data;
  std::vector<std::pair<std::string, std::string>> names;  // name expression to lowered name
  std::vector<std::pair<std::string, Signature>> signatures;
  std::string log;  // the compiler's output

  // The image of a file, with its names and signatures; Save, Python's Image.save and the compilers
  // write such files.
  static Image FromFile(const std::string& path);

  // The bytes of a file that holds the image with its names and signatures, as culaunch.load and
  // culaunch::Module read it.
  std::string ToFile() const;

  void Save(const std::string& path) const;

  // A module of it, which is the caller's.
  Module Load(ModuleOptions options = {}) const;
};

CULAUNCH_NAMESPACE_END
