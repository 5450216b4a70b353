#include "profile/profiler.h"

#include <culaunch/graph.h>
#include <culaunch/guard.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "python/python.h"

namespace profile {

namespace {

// The maximum number of launches with pending events. Above it, the oldest events are read and
// reused.
constexpr size_t kMostPending = 4096;

int64_t Now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

// A thread's last launch: its place in a log.
struct LastLaunch {
  Profiler* profiler = nullptr;
  size_t clears = 0;
  size_t index = 0;
};
thread_local LastLaunch t_last;

// Makes the context of a launch current, as the launch itself would.
class LaunchContext {
 public:
  LaunchContext(culaunch::Driver& driver, CUstream stream, int* ordinal) {
    if (culaunch::IsDefaultStream(stream)) {
      if (*ordinal < 0) *ordinal = culaunch::CurrentDevice(driver);
      device_.emplace(driver, *ordinal);
      return;
    }
    CUcontext context = nullptr;
    CUcontext current = nullptr;
    if (driver.cuStreamGetCtx(stream, &context) != CUDA_SUCCESS) return;
    driver.cuCtxGetCurrent(&current);
    if (context != current) context_.emplace(driver, context);
    if (*ordinal < 0) *ordinal = culaunch::CurrentDevice(driver);
  }

 private:
  std::optional<culaunch::DeviceGuard> device_;
  std::optional<culaunch::ContextGuard> context_;
};

}  // namespace

Profiler& Profiler::Of(culaunch::Driver& driver) {
  static culaunch::Mutex mutex;
  static auto* const all = new std::map<culaunch::Driver*, Profiler*>();
  const culaunch::LockGuard lock(mutex);
  Profiler*& own = (*all)[&driver];
  if (own == nullptr) own = new Profiler(driver);
  return *own;
}

Profiler::Mark Profiler::Start(size_t limit) {
  const culaunch::LockGuard lock(mutex_);
  limit_ = std::max(limit, profiles_ != 0 ? limit_ : 0);
  if (profiles_++ == 0) driver_.graphs.Observe(this);
  return {log_.size(), omitted_};
}

Profiler::Log Profiler::Stop(const Mark& start) {
  const culaunch::RelaxedCaptureGuard relaxed(driver_);
  Wait(start);
  const culaunch::LockGuard lock(mutex_);
  Log log;
  for (size_t i = start.begin; i < log_.size(); ++i) {
    LaunchRecord& record = log_[i];
    if (record.time == TimeState::kPending) {
      ContextClock& clock = *clocks_[static_cast<size_t>(record.context)];
      const bool is_alive = clock.IsAlive();
      // After the wait, the work is done, unless the wait failed.
      if (!is_alive || !clock.Read(&record)) {
        record.time = TimeState::kLost;
        record.code = is_alive ? CUDA_ERROR_NOT_READY : CUDA_ERROR_CONTEXT_IS_DESTROYED;
      }
    }
    log.launches.push_back(record);
  }
  log.omitted = omitted_ - start.omitted;
  log.kernels = kernels_;
  for (const LaunchedKernel& kernel : log.kernels) kernel.state->Enter();
  if (--profiles_ == 0) {
    driver_.graphs.Observe(nullptr);
    Clear();
  }
  return log;
}

// Wait without the lock. Other threads must be able to launch, because a kernel may wait for
// another.
void Profiler::Wait(const Mark& start) {
  std::vector<std::pair<ContextClock*, CUevent>>
      ends;  // the clocks stay, because this profile has not ended
  {
    const culaunch::LockGuard lock(mutex_);
    for (size_t i = start.begin; i < log_.size(); ++i) {
      const LaunchRecord& record = log_[i];
      if (record.time != TimeState::kPending) continue;
      ends.emplace_back(clocks_[static_cast<size_t>(record.context)].get(), record.end);
    }
  }
  for (size_t i = 0; i < ends.size();) {
    const ContextClock* const clock = ends[i].first;
    std::optional<culaunch::ContextGuard> guard;
    if (clock->IsAlive()) guard.emplace(driver_, clock->context());
    for (; i < ends.size() && ends[i].first == clock; ++i) {
      if (guard && guard->code() == CUDA_SUCCESS) driver_.cuEventSynchronize(ends[i].second);
    }
  }
}

void Profiler::Clear() {
  for (const auto& clock : clocks_) {
    if (!clock->IsAlive()) continue;
    const culaunch::ContextGuard guard(driver_, clock->context());
    if (guard.code() == CUDA_SUCCESS) clock->Destroy();
  }
  for (const LaunchedKernel& kernel : kernels_) kernel.state->Leave();
  clocks_.clear();
  kernels_.clear();
  numbers_.clear();
  log_.clear();
  read_ = 0;
  omitted_ = 0;
  ++clears_;
}

bool Profiler::HasRoom() {
  const culaunch::LockGuard lock(mutex_);
  if (profiles_ == 0) return false;
  if (log_.size() < limit_) return true;
  ++omitted_;
  return false;
}

CUresult Profiler::Launch(culaunch::KernelState& kernel, const CUlaunchConfig& config, int ordinal,
                          void** arguments) noexcept {
  const auto launch = [&] { return kernel.KernelOnDevices::Launch(config, ordinal, arguments); };
  if (!HasRoom()) return launch();
  LaunchRecord record;
  record.stream = config.hStream;
  record.shared = config.sharedMemBytes;
  const unsigned grid[3] = {config.gridDimX, config.gridDimY, config.gridDimZ};
  const unsigned block[3] = {config.blockDimX, config.blockDimY, config.blockDimZ};
  std::copy(grid, grid + 3, record.grid);
  std::copy(block, block + 3, record.block);
  record.ordinal = ordinal;
  const LaunchContext context(driver_, config.hStream, &record.ordinal);
  Time(&record, launch);
  const CUresult code = record.time == TimeState::kRefused ? record.code : CUDA_SUCCESS;
  Append(std::move(record), &kernel, &config);
  return code;
}

CUresult Profiler::LaunchGraph(const culaunch::Graph& graph, CUgraphExec executable,
                               CUstream stream) noexcept {
  const auto launch = [&] { return driver_.cuGraphLaunch(executable, stream); };
  if (!HasRoom()) return launch();
  LaunchRecord record;
  record.stream = stream;
  record.ordinal = graph.ordinal();
  for (size_t i = 0; i < graph.size(); ++i) {
    const culaunch::GraphNode& node = graph.node(i);
    if (node.type == CU_GRAPH_NODE_TYPE_KERNEL) record.graph_kernels.push_back(node.name);
  }
  const LaunchContext context(driver_, stream, &record.ordinal);
  Time(&record, launch);
  const CUresult code = record.time == TimeState::kRefused ? record.code : CUDA_SUCCESS;
  Append(std::move(record), nullptr, nullptr);
  return code;
}

template <class Call>
void Profiler::Time(LaunchRecord* record, const Call& call) {
  const bool has_events = TakeEvents(record);
  record->begin = Now();
  const CUresult code = call();
  record->duration = Now() - record->begin;
  if (code != CUDA_SUCCESS) {
    record->code = code;
    record->time = TimeState::kRefused;
  } else if (has_events && driver_.cuEventRecord(record->end, record->stream) == CUDA_SUCCESS) {
    record->time = TimeState::kPending;
    return;
  }
  GiveBack(record);
}

bool Profiler::TakeEvents(LaunchRecord* record) {
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult code = driver_.cuStreamIsCapturing != nullptr
                            ? driver_.cuStreamIsCapturing(record->stream, &capture)
                            : CUDA_SUCCESS;
  if (code == CUDA_SUCCESS && capture != CU_STREAM_CAPTURE_STATUS_NONE) {
    record->time = TimeState::kCaptured;
  }
  // The emulator's events use the host's clock.
  if (code != CUDA_SUCCESS || record->time == TimeState::kCaptured ||
      driver_.name() == "emulator" || driver_.cuEventCreate == nullptr ||
      driver_.cuEventElapsedTime == nullptr || driver_.cuEventQuery == nullptr ||
      driver_.cuEventRecord == nullptr || driver_.cuEventDestroy == nullptr ||
      driver_.cuEventSynchronize == nullptr) {
    return false;
  }
  CUcontext context = nullptr;
  unsigned long long id = 0;
  if (driver_.cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr) return false;
  if (driver_.cuCtxGetId != nullptr) driver_.cuCtxGetId(context, &id);
  const culaunch::RelaxedCaptureGuard relaxed(driver_);
  const culaunch::LockGuard lock(mutex_);
  size_t index = 0;
  while (index < clocks_.size() && !clocks_[index]->Is(context, id)) ++index;
  if (index == clocks_.size()) {
    clocks_.push_back(std::make_unique<ContextClock>(driver_, context, id));
  }
  ContextClock& clock = *clocks_[index];
  record->context = static_cast<int>(index);
  clock.Begin(record->stream);
  if (!clock.TakeEvents(record)) return false;
  if (driver_.cuEventRecord(record->start, record->stream) == CUDA_SUCCESS) return true;
  clock.GiveBack(record);
  return false;
}

void Profiler::GiveBack(LaunchRecord* record) {
  if (record->context < 0) return;
  const culaunch::LockGuard lock(mutex_);
  if (static_cast<size_t>(record->context) >= clocks_.size()) return;  // the profiles have ended
  clocks_[static_cast<size_t>(record->context)]->GiveBack(record);
}

void Profiler::Append(LaunchRecord&& record, culaunch::KernelState* kernel,
                      const CUlaunchConfig* config) {
  record.thread = PyThread_get_thread_ident();
  const culaunch::RelaxedCaptureGuard relaxed(driver_);
  const culaunch::LockGuard lock(mutex_);
  if (profiles_ == 0) {  // the profile ended during the launch
    for (const CUevent event : {record.start, record.end}) {
      if (event != nullptr) driver_.cuEventDestroy(event);
    }
    return;
  }
  if (kernel != nullptr) record.kernel = NumberOf(*kernel, *config, record.ordinal);
  t_last = {this, clears_, log_.size()};
  log_.push_back(std::move(record));
  if (log_.size() - read_ >= kMostPending) ReadFinished();
}

void Profiler::ReadFinished() {
  for (; read_ < log_.size(); ++read_) {
    LaunchRecord& record = log_[read_];
    if (record.time != TimeState::kPending) continue;
    if (!clocks_[static_cast<size_t>(record.context)]->Read(&record)) return;
  }
}

int Profiler::NumberOf(culaunch::KernelState& kernel, const CUlaunchConfig& config, int ordinal) {
  const int threads = static_cast<int>(config.blockDimX * config.blockDimY * config.blockDimZ);
  const auto [place, is_new] = numbers_.emplace(
      Key{&kernel, ordinal, threads, config.sharedMemBytes}, static_cast<int>(kernels_.size()));
  if (is_new) {
    LaunchedKernel launched = {&kernel, ordinal, threads, config.sharedMemBytes};
    kernel.Enter();
    Ask(&launched);
    kernels_.push_back(launched);
  }
  return place->second;
}

void Profiler::Ask(LaunchedKernel* kernel) const {
  const CUkernel handle = kernel->state->handle();
  if (handle == nullptr || kernel->ordinal < 0 || kernel->ordinal >= driver_.device_count()) return;
  const std::pair<CUfunction_attribute, int*> wanted[] = {
      {CU_FUNC_ATTRIBUTE_NUM_REGS, &kernel->registers},
      {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &kernel->static_shared},
      {CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &kernel->local_bytes},
      {CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &kernel->max_threads},
  };
  for (const auto& [attribute, value] : wanted) {
    int found = 0;
    if (driver_.cuKernelGetAttribute(&found, attribute, handle, driver_.Handle(kernel->ordinal)) ==
        CUDA_SUCCESS) {
      *value = found;
    }
  }
  int blocks = 0;
  if (driver_.cuOccupancyMaxActiveBlocksPerMultiprocessor(
          &blocks, reinterpret_cast<CUfunction>(handle), kernel->threads, kernel->dynamic_shared) ==
      CUDA_SUCCESS) {
    kernel->active_blocks = blocks;
  }
}

void Profiler::NoteLastBytes(const culaunch::KernelState* kernel, int64_t bytes) {
  const LastLaunch last = std::exchange(t_last, {});
  if (last.profiler == nullptr) return;
  Profiler& self = *last.profiler;
  const culaunch::LockGuard lock(self.mutex_);
  if (last.clears != self.clears_ || last.index >= self.log_.size()) return;
  LaunchRecord& record = self.log_[last.index];
  if (record.kernel < 0) return;
  const auto* launched = self.kernels_[static_cast<size_t>(record.kernel)].state;
  if (kernel == nullptr || kernel == launched) record.argument_bytes = bytes;
}

}  // namespace profile
