// Does what a test asks of culaunch::Jit, line by line: a field and its value in hexadecimal
// digits, then "archs", "key" or "compile", "link_key" or "link". It stands beside Python's
// culaunch.compile, which is asked the same.
#include <culaunch/jit.h>
#include <culaunch/jit/toolkit/architectures.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <sstream>

namespace {

std::string Unhex(const std::string& digits) {
  std::string text;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    text += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  }
  return text;
}

std::string Hex(const std::string& bytes) {
  std::string digits;
  for (const char c : bytes) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(c));
    digits += two;
  }
  return digits;
}

struct Request {
  std::string source;
  std::vector<std::string> names;
  culaunch::CompileOptions options;
  culaunch::JitOptions jit;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string last_header;
  std::string file;
  std::vector<culaunch::LinkInput> inputs;

  void Take(const std::string& field, const std::string& value) {
    if (field == "source") source = value;
    if (field == "file") file = value;
    if (field == "image") inputs.emplace_back(culaunch::Image::FromFile(value));
    if (field == "input") inputs.push_back(culaunch::LinkInput::File(value));
    if (field == "expression") names.push_back(value);
    if (field == "arch") options.arch.push_back(value);
    if (field == "std") options.std = value;
    if (field == "define") {
      options.defines[value.substr(0, value.find('='))] = value.substr(value.find('=') + 1);
    }
    if (field == "include_dir") options.include_dirs.push_back(value);
    if (field == "fast_math") options.fast_math = true;
    if (field == "line_info") options.line_info = true;
    if (field == "debug") options.debug = true;
    if (field == "maxrregcount") options.maxrregcount = std::stoi(value);
    if (field == "extra_device_vectorization") options.extra_device_vectorization = true;
    if (field == "device_as_default_execution_space") {
      options.device_as_default_execution_space = true;
    }
    if (field == "relocatable") options.relocatable = true;
    if (field == "lto") options.lto = true;
    if (field == "pch") options.pch = true;
    if (field == "extra_option") options.extra_options.push_back(value);
    if (field == "name") options.name = value;
    if (field == "header") last_header = value;
    if (field == "text") headers.emplace_back(last_header, value);
    if (field == "cache") jit.cache.path = value;
    if (field == "bundles") jit.cache.bundles.emplace(1, value);
    if (field == "max_bytes") jit.cache.max_bytes = std::stoll(value);
    if (field == "nvrtc") jit.nvrtc = value;
    if (field == "nvjitlink") jit.nvjitlink = value;
  }

  culaunch::LinkOptions ToLink() const {
    culaunch::LinkOptions link;
    link.arch = options.arch;
    link.line_info = options.line_info;
    link.debug = options.debug;
    link.maxrregcount = options.maxrregcount;
    link.extra_options = options.extra_options;
    return link;
  }

  void Answer(const std::string& command) {
    if (command == "archs") {
      for (const std::string& arch : culaunch::jit::ResolveArchs(options.arch, false)) {
        std::cout << arch << " ";
      }
      std::cout << std::endl;
      return;
    }
    culaunch::Jit compiler(jit);
    if (command == "link_key") {
      std::cout << compiler.LinkKey(inputs, ToLink()) << std::endl;
      return;
    }
    if (command == "link") {
      std::cout << Hex(compiler.Link(inputs, ToLink()).ToFile()) << std::endl;
      return;
    }
    for (const auto& [name, text] : headers) compiler.AddHeader(name, text);
    if (command == "key") {
      std::cout << compiler.Key(source, names, options) << std::endl;
      return;
    }
    const culaunch::Image image = file.empty() ? compiler.Compile(source, names, options)
                                               : compiler.CompileFile(file, names, options);
    std::cout << Hex(image.ToFile()) << " " << Hex(image.log) << std::endl;
  }
};

}  // namespace

int main() {
  Request request;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string field, value;
    words >> field >> value;
    if (!value.empty()) {
      request.Take(field, Unhex(value));
      continue;
    }
    try {
      request.Answer(field);
    } catch (const culaunch::Error& error) {
      std::cout << "error " << Hex(error.what()) << std::endl;
    }
    request = Request();
  }
}
