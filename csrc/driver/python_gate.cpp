#include "driver/python_gate.h"

#include <atomic>

#include "python/python.h"

namespace {

culaunch::DriverTable g_table;
culaunch::NoteArrayFunction g_note_array = nullptr;

// Whether Python code may still run: Py_FinalizeEx clears this first.
bool IsAlive() { return Py_IsInitialized() != 0; }

// The function of g_table behind `member`.
template <auto member, class Function>
struct Gate;

template <auto member, class... Arguments>
struct Gate<member, CUresult (*)(Arguments...)> {
  static CUresult Call(Arguments... arguments) {
    if (!IsAlive()) return CUDA_ERROR_DEINITIALIZED;
    try {
      return (g_table.*member)(arguments...);
    } catch (...) {
      WaitForExit();
    }
  }
};

void NoteArray(const void* begin, size_t bytes, unsigned note) {
  if (!IsAlive()) return;
  try {
    g_note_array(begin, bytes, note);
  } catch (...) {
    WaitForExit();
  }
}

}  // namespace

bool GateFunctions(culaunch::DriverTable* table, culaunch::NoteArrayFunction* note_array) {
  static std::atomic<bool> is_taken{false};
  if (is_taken.exchange(true)) return false;
  g_table = *table;
#define CULAUNCH_GATE(function, version, required)                                         \
  if (table->function != nullptr) {                                                        \
    table->function = Gate<&culaunch::DriverTable::function, decltype(&::function)>::Call; \
  }
  CULAUNCH_DRIVER_FUNCTIONS(CULAUNCH_GATE)
#undef CULAUNCH_GATE
  g_note_array = *note_array;
  if (g_note_array != nullptr) *note_array = NoteArray;
  return true;
}
