// The results of grid functions: a function is called again only if one of its inputs has changed.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "python/python.h"

namespace triton {

// The arguments of a call by parameter, positional or keyword: borrowed, null if absent.
class ArgumentsOfCall {
 public:
  virtual PyObject* operator[](size_t parameter) const = 0;

 protected:
  ~ArgumentsOfCall() = default;
};

class GridMemo {
 public:
  GridMemo() = default;
  GridMemo(const GridMemo&) = delete;
  GridMemo& operator=(const GridMemo&) = delete;

  // Find the function's result from an earlier call in which all values that it reads were the
  // same.
  bool Find(PyObject* grid, const ArgumentsOfCall& arguments, uint32_t* dims) const;

  // Record a function's result. The first time, ask the dispatcher which values the function reads.
  // False with a Python error set.
  bool Learn(PyObject* dispatcher, PyObject* grid, const ArgumentsOfCall& arguments,
             const uint32_t* dims);

  // Forget everything, which may run Python.
  void Clear();
  // For the garbage collector.
  int Traverse(visitproc visit, void* arg) const;

 private:
  // A value that a function reads: its type, and its bits or its identity.
  struct Value {
    const void* type;
    uint64_t bits;
    bool operator==(const Value& other) const { return type == other.type && bits == other.bits; }
  };
  static constexpr size_t kMost = 16;
  struct Values {
    std::array<Value, kMost> values;
    size_t count = 0;
  };
  struct Answer {
    Values read;
    std::vector<Ref> kept;  // the objects that are compared by identity
    uint32_t dims[3];
  };
  // The facts about the functions that share one code object.
  struct Plan {
    Ref code;
    Ref globals;               // null if it uses none
    const void* type;          // of the function
    bool is_called = false;    // it must be called every time
    std::vector<int> numbers;  // parameters whose values it reads,
    std::vector<int> nones;    // the values that it compares with None
    std::vector<Ref> held;     // what its closed-over variables held, which never changes
    std::vector<Answer> answers;
    size_t next = 0;
  };

  const Plan* PlanOf(PyObject* grid) const;
  static bool Read(const Plan& plan, PyObject* grid, const ArgumentsOfCall& arguments, Values* read,
                   std::vector<Ref>* kept);
  static bool Add(const Plan& plan, PyObject* object, bool is_held, Values* read,
                  std::vector<Ref>* kept);
  std::unique_ptr<Plan> MakePlan(PyObject* dispatcher, PyObject* grid);

  static constexpr size_t kPlans = 8;
  static constexpr size_t kAnswers = 8;
  std::vector<std::unique_ptr<Plan>> plans_;
};

}  // namespace triton
