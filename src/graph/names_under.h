// Scopes of names while something is made.
#pragma once

#include <string>
#include <utility>

#include "graph/builder.h"
#include "op/spelled_out.h"

namespace headrace {

// While it lives, names of what `builder` makes begin with `scope`.
class NamesUnder {
 public:
  NamesUnder(GraphBuilder* builder, std::string scope)
      : builder_(builder), around_(builder->scope()) {
    builder_->set_scope(std::move(scope));
  }
  ~NamesUnder() { builder_->set_scope(std::move(around_)); }
  NamesUnder(const NamesUnder&) = delete;

 private:
  GraphBuilder* const builder_;
  std::string around_;
};

// While it lives, gradients that are emitted into `builder` are spelled out.
class SpelledIn {
 public:
  explicit SpelledIn(GraphBuilder* builder) : spelled_(&Take, builder) {}

 private:
  static std::string Take(Emitter* graph, StringView base) {
    return static_cast<GraphBuilder*>(graph)->UniqueScope(base);
  }
  SpelledOut spelled_;
};

}  // namespace headrace
