#include "xla/call_lists.h"

namespace xla_calls {

namespace {

thread_local std::unique_ptr<CallLists> t_spare;  // a call inside a call is rare

template <class... Lists>
void Clear(Lists&... lists) {
  (lists.clear(), ...);
}

}  // namespace

std::unique_ptr<CallLists> TakeLists() {
  return t_spare != nullptr ? std::move(t_spare) : std::make_unique<CallLists>();
}

void GiveLists(std::unique_ptr<CallLists> lists) {
  Clear(lists->results, lists->scratch, lists->open, lists->objects, lists->inputs, lists->given,
        lists->sources, lists->held);
  t_spare = std::move(lists);
}

}  // namespace xla_calls
