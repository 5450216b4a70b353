// The arguments of an exported function: the kind of each, and its value.
#pragma once

#include <tvm/ffi/any.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/string.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

#include "function_errors.h"
#include "tvm_ffi.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

namespace function {

using ::tvm::ffi::Any;
using ::tvm::ffi::AnyView;
using ::tvm::ffi::TensorView;

// By position. Those that a call leaves out at the end have defaults, or it is refused.
class Arguments {
 public:
  Arguments(const char* name, const AnyView* values, int32_t count)
      : name_(name), values_(values), count_(count) {}

  const char* name() const { return name_; }

  // The arguments after the first `count`, and those; raise if there are fewer.
  Arguments After(int32_t count) const {
    Check(count_ >= count, "TypeError", name_, " takes its ", int64_t{count},
          " output(s) first (got ", int64_t{count_}, " arguments)");
    return {name_, values_ + count, count_ - count};
  }

  bool HasAtMost(int32_t count) const { return count_ <= count; }
  bool IsLeftOut(int32_t i) const { return i >= count_; }
  bool IsNone(int32_t i) const { return TypeOf(i) == ::tvm::ffi::TypeIndex::kTVMFFINone; }
  bool IsInt(int32_t i) const { return TypeOf(i) == ::tvm::ffi::TypeIndex::kTVMFFIInt; }
  bool IsFloat(int32_t i) const { return TypeOf(i) == ::tvm::ffi::TypeIndex::kTVMFFIFloat; }
  bool IsBool(int32_t i, bool value) const {
    return TypeOf(i) == ::tvm::ffi::TypeIndex::kTVMFFIBool && values_[i].cast<bool>() == value;
  }
  bool IsText(int32_t i, const char* text) const {
    if (IsLeftOut(i)) return false;
    const auto value = values_[i].try_cast<::tvm::ffi::String>();
    return value.has_value() && *value == text;
  }
  bool IsDtype(int32_t i, DLDataType dtype) const {
    return TypeOf(i) == ::tvm::ffi::TypeIndex::kTVMFFIDataType &&
           values_[i].cast<DLDataType>() == dtype;
  }
  bool IsArray(int32_t i, DLDataType dtype, int rank) const {
    const auto view = ViewOf(i);
    return view.has_value() && view->dtype() == dtype && view->ndim() == rank;
  }
  // A list or tuple of so many items; which arrays they are is asked one by one.
  bool IsList(int32_t i, int64_t size) const {
    return TypeOf(i) == ::tvm::ffi::TypeIndex::kTVMFFIArray &&
           static_cast<int64_t>(Items(i).size()) == size;
  }
  bool IsItem(int32_t i, int64_t item, DLDataType dtype, int rank) const {
    const auto view = Items(i)[item].try_cast<TensorView>();
    return view.has_value() && view->dtype() == dtype && view->ndim() == rank;
  }

  TensorView Array(int32_t i) const { return values_[i].cast<TensorView>(); }
  TensorView Item(int32_t i, int64_t item) const { return Items(i)[item].cast<TensorView>(); }
  int64_t Int(int32_t i, int64_t otherwise = 0) const {
    return IsLeftOut(i) ? otherwise : values_[i].cast<int64_t>();
  }
  double Float(int32_t i, double otherwise = 0) const {
    return IsLeftOut(i) ? otherwise : values_[i].cast<double>();
  }

  // Raise for a call of a kind that was not exported.
  [[noreturn]] void Refuse(std::initializer_list<const char*> known) const {
    std::string message = std::string(name_) + "(";
    for (int32_t i = 0; i < count_; ++i) message += (i != 0 ? ", " : "") + Described(i);
    message += ") was not exported; the exported calls are";
    for (const char* kind : known) message.append("\n    ").append(kind);
    Raise("TypeError", message);
  }

 private:
  int32_t TypeOf(int32_t i) const { return IsLeftOut(i) ? -1 : values_[i].type_index(); }

  std::optional<TensorView> ViewOf(int32_t i) const {
    if (IsLeftOut(i)) return std::nullopt;
    return values_[i].try_cast<TensorView>();
  }

  ::tvm::ffi::Array<Any> Items(int32_t i) const {
    return values_[i].cast<::tvm::ffi::Array<Any>>();
  }

  static std::string Described(const TensorView& x) {
    std::string text = ffi::ToString(x.dtype()) + "[";
    for (int axis = 0; axis < x.ndim(); ++axis) text += axis != 0 ? ", _" : "_";
    return text + "]";
  }

  std::string Described(int32_t i) const {
    if (IsInt(i)) return "int";
    if (IsFloat(i)) return "float";
    if (IsBool(i, true)) return "True";
    if (IsBool(i, false)) return "False";
    if (IsNone(i)) return "None";
    if (const auto view = ViewOf(i)) return Described(*view);
    if (const auto text = values_[i].try_cast<::tvm::ffi::String>()) {
      return "'" + std::string(*text) + "'";
    }
    if (TypeOf(i) == ::tvm::ffi::TypeIndex::kTVMFFIArray) {
      std::string items;
      for (const Any& item : Items(i)) {
        const auto view = item.try_cast<TensorView>();
        items += (items.empty() ? "" : ", ") + (view ? Described(*view) : item.GetTypeKey());
      }
      return "list of (" + items + ")";
    }
    return values_[i].GetTypeKey();
  }

  const char* name_;
  const AnyView* values_;
  int32_t count_;
};

}  // namespace function

CULAUNCH_NAMESPACE_END
