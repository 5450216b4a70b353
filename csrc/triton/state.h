// The state of a dispatcher: its kernel, and what it learned from calls.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "python/guards.h"
#include "triton/grid_memo.h"
#include "triton/keyword_style.h"
#include "triton/parameter.h"
#include "triton/specialize.h"
#include "triton/tuning.h"
#include "triton/words.h"

namespace triton {

class Form;  // triton/form.h

struct alignas(64) State {
  // Members that every call reads come first.
  static constexpr int kForms = 4;
  Form* forms[kForms] = {};  // owned; the one that was used last comes first
  culaunch::Driver* table = nullptr;
  const DLPackExchangeAPI* fallback = nullptr;  // whose stream a call without arrays uses
  int device_type = 0;                          // of the driver's own memory
  int users = 0;                                // how many calls use what was learned now
  uint64_t not_counted = 0;
  uint64_t* launches = &not_counted;
  bool sets_to_zero = false;  // `zeroes` has some
  KeywordStyle style;
  Guards guards;

  std::mutex mutex;
  Ref driver;                // the _core.Driver; null before the first call
  std::vector<int> targets;  // by device: 10 major + minor
  std::unique_ptr<Parameter[]> parameters;
  size_t count = 0;
  std::vector<size_t> runtime;    // which of them are passed,
  std::vector<size_t> constants;  // and which are constants
  static constexpr size_t kMostZeroes = 8;
  std::vector<size_t> zeroes;  // those that are set to zero before each launch
  Interner interner;
  WordTable<PyObject*> variants;  // owned
  bool falls_back = false;        // calls that cannot be launched here go to Triton
  bool is_compiled = false;       // called as what Triton compiled: by position, all arguments
  bool is_tuned = false;
  std::vector<KeyPart> tuning_key;
  std::vector<Ref> types;          // of arguments that are no numbers: a key numbers them so
  std::vector<KeyPart> shape_key;  // those of the key that are parts of shapes, by the parameter
  PyObject* self = nullptr;        // borrowed: the dispatcher
  bool tells_choices = false;      // it wants to know each choice
  unsigned checks = 0;             // not 0: some calls are compared with what Python says
  WordTable<std::shared_ptr<const TunedChoice>> choices;
  std::shared_ptr<const TunedChoice> last_choice;
  GridMemo grids;
  bool variants_have_constants = false;  // the arguments of a grid function depend on the variant
  unsigned misses = 0;                   // of the quick path
  std::vector<Form*> retired;            // owned: forms that were dropped while calls used them
  bool is_learning = false;              // a call is, which may run Python
  unsigned times_forgotten = 0;          // how often everything learned was dropped
  mutable unsigned traversal = 0;        // which one of the garbage collector's this is
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
