// Running a program for one call: its plan, then the effects of the leaf that the plan ends in.
#pragma once

#include "arguments/views/storage.h"
#include "function/calls/call.h"
#include "function/plans/plan.h"
#include "function/plans/replay.h"

namespace function {

Ref TupleOf(const int64_t* numbers, int count);

class Execution {
 public:
  explicit Execution(FunctionCall& call);
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;
  ~Execution();

  // Fill in the registers. If nothing changed, reuse the last call's.
  PlanEnd Plan();

  // Perform the effects: return the function's result, or null with a Python error set.
  PyObject* Run();

 private:
  static constexpr size_t kUsualRegisters = 96;
  static constexpr const char* kEncoding = "encoding a tensor map for";

  // Why effects stopped, if no Python error could be set yet.
  struct Failure {
    const Effect* effect = nullptr;
    CUlaunchConfig config = {};
    CUresult code = CUDA_SUCCESS;
    const char* what = nullptr;
  };

  bool Recall();
  bool LetFollow(Replay& replay) const;
  void Remember();
  // Run everything except the launches, then all launches. False with a Python error set.
  bool RunChain();
  bool Do(const ReplayStep& step);
  // Whether the effects of the leaf can be executed, as far as this is known before the first one.
  bool CheckEffects();
  bool CheckAllocation(const Effect& effect);
  bool CheckRanges(const Effect& effect);
  bool CheckLaunch(const Effect& effect);
  bool CheckMaps(const Effect& effect);
  void PretendArray(const Effect& effect);
  bool TakesBlock(culaunch::KernelState& kernel, const culaunch::LaunchConfig& config) const;

  bool ReadConstantArray(const Effect& effect);
  bool Allocate(const ReplayStep& step);
  // Allocate an array whose element type is `number`.
  bool AllocateMemory(ArrayValue* value, uint8_t number, int rank, const int64_t* shape);
  bool AllocateAsFramework(ArrayValue* value, uint8_t number, int rank, const int64_t* shape);
  bool PlaceScratch(const ReplayStep& step);
  void MakeView(const Effect& effect, int64_t offset);
  bool CheckFill(const Effect& effect);
  bool Call(const Effect& effect);
  // Enqueue consecutive launches and fills, without the GIL.
  const ReplayStep* Enqueue(const ReplayStep* step, const ReplayStep* end, Failure* failure);
  CUresult Launch(const Effect& effect, Failure* failure);
  // Tell an observer the size of a launch's arrays.
  void NoteBytes(const Effect& effect, culaunch::LaunchObserver* observer) const;
  bool Zero(const Effect& effect, char* begin, Word value, size_t bytes);
  CUresult Fill(const Part& part, unsigned char* target);
  CUresult EncodeMap(const Part& part, unsigned char* target);
  culaunch::LaunchConfig ConfigOf(const Effect& effect) const;
  void ReadStorages();
  void ReadStorage(PyObject* object, const ArrayValue& value);
  void TellDriver() const;
  bool RaiseFailure(const Failure& failure) const;

  PyObject* ObjectOf(int32_t array);
  PyObject* ObjectOfView(int32_t array);
  bool IsInside(const ArrayValue& base, const DLTensor& view) const;
  PyObject* Simple(Value kind, int32_t index, Ref* made) const;
  Ref Items(const Word** word, bool is_list);
  Ref Result(const Word** word);
  Ref Finish(PyObject* object);

  uint32_t SharedMemoryOf(const function::Launch& launch) const {
    return launch.shared_memory < 0 ? 0 : static_cast<uint32_t>(Int(launch.shared_memory));
  }
  Word Int(int32_t index) const { return registers_[index]; }
  PyObject* Text(const Effect& effect) const { return program_.Text(effect.text); }

  FunctionCall& call_;
  const Program& program_;
  const Word* registers_ = nullptr;  // the plan's, later the replay's
  Replay* replay_ = nullptr;
  char* scratch_ = nullptr;  // the block of the scratch arrays, once allocated
  int32_t leaf_ = -1;
  std::vector<Storage> storages_;  // of the call's arrays, if the driver asks for them
  SmallBuffer<Word, kUsualRegisters> planned_;
};

}  // namespace function
