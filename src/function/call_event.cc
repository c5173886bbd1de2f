#include "function/call_event.h"

namespace headrace {

CallEvent::~CallEvent() {
  timeline::Record({timeline::Event::Kind::kCall, 0, std::move(name_), "",
                    begin_, timeline::Now(), std::move(attributes_)});
}

void CallEvent::SetEager() {
  attributes_.emplace_back("tf_function_call", "eager");
}

void CallEvent::SetConcrete() {
  attributes_.emplace_back("tf_function_call", "concrete");
}

void CallEvent::SetTraces(int64_t before, int64_t after) {
  attributes_.emplace_back("tf_function_call", after > before
                                                   ? "traced-nonXla"
                                                   : "notTraced-nonXla");
  attributes_.emplace_back("tracing_count", after);
}

}  // namespace headrace
