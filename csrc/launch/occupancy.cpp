#include "launch/occupancy.h"

#include <culaunch/demangle.h>
#include <culaunch/guard.h>

#include <string>

#include "driver/errors.h"
#include "launch/configuration.h"
#include "launch/kernel_object.h"

namespace {

void RequireLoaded(const culaunch::KernelState& state) {
  if (state.handle() != nullptr) return;
  throw culaunch::Error("the module of " + culaunch::Demangle(state.name()) +
                        " was unloaded: load it again");
}

}  // namespace

PyObject* KernelAttribute(PyObject* self, PyObject* args) {
  int attribute = 0;
  int ordinal = 0;
  if (!PyArg_ParseTuple(args, "ii:_attribute", &attribute, &ordinal)) return nullptr;
  return Guarded<PyObject*>(nullptr, nullptr, [&] {
    culaunch::KernelState& state = *KernelOf(self)->state;
    culaunch::Driver& driver = state.driver();
    int value = 0;
    RequireLoaded(state);
    driver.Device(ordinal);
    const culaunch::DeviceGuard guard(driver, ordinal);
    driver.Check(guard.code(), "making the device current");
    driver.Check(driver.cuKernelGetAttribute(&value, static_cast<CUfunction_attribute>(attribute),
                                             state.handle(), driver.Device(ordinal)),
                 "reading an attribute of " + state.name());
    return PyLong_FromLong(value);
  });
}

PyObject* KernelMakeReady(PyObject* self, PyObject* args) {
  int ordinal = 0;
  if (!PyArg_ParseTuple(args, "i:_make_ready", &ordinal)) return nullptr;
  return Guarded<PyObject*>(nullptr, nullptr, [&]() -> PyObject* {
    culaunch::KernelState& state = *KernelOf(self)->state;
    RequireLoaded(state);
    state.driver().Device(ordinal);
    const CUresult code = WithoutGil([&] { return state.MakeReady(CUlaunchConfig{}, ordinal); });
    state.driver().Check(code, "loading " + state.name() + " on a device");
    Py_RETURN_NONE;
  });
}

PyObject* KernelMaxDynamicSharedMemory(PyObject* self, PyObject* args) {
  int ordinal = 0;
  if (!PyArg_ParseTuple(args, "i:_max_dynamic_shared_memory", &ordinal)) return nullptr;
  return Guarded<PyObject*>(nullptr, nullptr, [&] {
    culaunch::KernelState& state = *KernelOf(self)->state;
    int bytes = 0;
    RequireLoaded(state);
    state.driver().Device(ordinal);
    state.driver().Check(state.MaxDynamicSharedMemory(ordinal, &bytes),
                         "reading the shared memory of " + state.name());
    return PyLong_FromLong(bytes);
  });
}

PyObject* KernelOccupancy(PyObject* self, PyObject* args) {
  int ordinal = 0;
  PyObject *block, *shared, *cluster;
  culaunch::LaunchConfig config;
  if (!PyArg_ParseTuple(args, "iOOO:_occupancy", &ordinal, &block, &shared, &cluster) ||
      !ReadDims("block", block, &config.block) ||
      !ReadBytes("shared_memory", shared, &config.shared_memory) ||
      (cluster != Py_None && !ReadDims("cluster", cluster, &config.cluster))) {
    return nullptr;
  }
  config.grid = config.HasCluster() ? config.cluster : culaunch::Dim3(1);
  return Guarded<PyObject*>(nullptr, nullptr, [&] {
    culaunch::KernelState& state = *KernelOf(self)->state;
    culaunch::Driver& driver = state.driver();
    const std::string what = "reading the occupancy of " + state.name();
    if (config.block.Volume() > INT32_MAX) {
      throw culaunch::Error("block " + config.block.ToString() + " is too large for any device");
    }
    RequireLoaded(state);
    const bool has_clusters = driver.Attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, ordinal) != 0;
    const culaunch::DeviceGuard guard(driver, ordinal);
    driver.Check(guard.code(), "making the device current");
    const culaunch::DriverLaunchConfig driver_config(config);
    driver.Check(state.Prepare(state.handle(), ordinal, driver_config.get()), what);
    auto* function = reinterpret_cast<CUfunction>(state.handle());
    int active = 0, best_grid = 0, best_block = 0, largest = 0, clusters = 0;
    driver.Check(
        driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
            &active, function, static_cast<int>(config.block.Volume()), config.shared_memory),
        what);
    driver.Check(driver.cuOccupancyMaxPotentialBlockSize(&best_grid, &best_block, function, nullptr,
                                                         config.shared_memory, 0),
                 what);
    if (has_clusters) {
      driver.Check(
          driver.cuOccupancyMaxPotentialClusterSize(&largest, function, &driver_config.get()),
          what);
    }
    if (config.HasCluster()) {
      driver.Check(driver.cuOccupancyMaxActiveClusters(&clusters, function, &driver_config.get()),
                   what);
    }
    const Ref most = has_clusters ? Ref(PyLong_FromLong(largest)) : Ref::Borrow(Py_None);
    const Ref fitting = config.HasCluster() ? Ref(PyLong_FromLong(clusters)) : Ref::Borrow(Py_None);
    return Py_BuildValue("iiiOO", active, best_block, best_grid, most.get(), fitting.get());
  });
}
