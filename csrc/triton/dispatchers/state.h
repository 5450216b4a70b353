// The state of a dispatcher: its kernel, and the forms learned from calls.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "python/guards.h"
#include "triton/dispatchers/keyword_style.h"
#include "triton/grids/grid_memo.h"
#include "triton/values/parameter.h"
#include "triton/values/specialize.h"
#include "triton/values/words.h"
#include "triton/variants/tuning.h"

namespace triton {

class Form;  // triton/quick/form.h

struct alignas(64) State {
  // Members that every call reads come first.
  static constexpr int kForms = 4;
  Form* forms[kForms] = {};  // owned; the most recently used one comes first
  culaunch::Driver* table = nullptr;
  const DLPackExchangeAPI* fallback = nullptr;  // provides the stream of calls without arrays
  int device_type = 0;                          // of the driver's own memory
  int users = 0;  // the number of calls that now use the learned forms
  uint64_t not_counted = 0;
  uint64_t* launches = &not_counted;
  bool sets_to_zero = false;  // `zeroes` is not empty
  KeywordStyle style;
  Guards guards;

  std::mutex mutex;
  Ref driver;                // the _core.Driver; null before the first call
  std::vector<int> targets;  // by device: 10 major + minor
  std::unique_ptr<Parameter[]> parameters;
  size_t count = 0;
  std::vector<size_t> runtime;    // the parameters that are passed,
  std::vector<size_t> constants;  // and those that are constants
  static constexpr size_t kMostZeroes = 8;
  std::vector<size_t> zeroes;  // those that are set to zero before each launch
  Interner interner;
  WordTable<PyObject*> variants;  // owned
  bool falls_back = false;        // calls that cannot be launched here go to Triton
  bool is_compiled = false;  // called like Triton's compiled kernel: all arguments, by position
  bool is_tuned = false;
  std::vector<KeyPart> tuning_key;
  std::vector<Ref> types;  // the types of arguments that are not numbers: a key has the index
  std::vector<KeyPart> shape_key;  // the parts of the key that are parts of shapes, by parameter
  PyObject* self = nullptr;        // borrowed: the dispatcher
  bool tells_choices = false;      // report each choice to it
  unsigned checks = 0;             // not 0: some calls are compared with Python's results
  WordTable<std::shared_ptr<const TunedChoice>> choices;
  std::shared_ptr<const TunedChoice> last_choice;
  GridMemo grids;
  bool variants_have_constants = false;  // a grid function's arguments depend on the variant
  unsigned misses = 0;                   // of the quick path
  std::vector<Form*> retired;            // owned: forms that were dropped while calls used them
  bool is_learning = false;              // a call is learning, which may run Python
  unsigned times_forgotten = 0;          // how often everything learned was dropped
  mutable unsigned traversal = 0;        // the garbage collector's current traversal
};

// While one of these lives, nothing that was learned is freed.
class StateUse {
 public:
  explicit StateUse(State& state) : state_(state) { ++state_.users; }
  StateUse(const StateUse&) = delete;
  StateUse& operator=(const StateUse&) = delete;
  ~StateUse() { --state_.users; }

 private:
  State& state_;
};

}  // namespace triton
