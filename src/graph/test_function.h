// Functions written in C++, for tests.
#pragma once

#include <functional>

#include "graph/builder.h"
#include "gtest/gtest.h"
#include "op/emitter.h"

namespace headrace {

using Values = std::vector<Value>;
using ArgTypes = std::vector<std::pair<DType, Shape>>;
using Body = std::function<Values(OpScope&, const Values&)>;

inline ArgTypes TypesOf(const std::vector<Tensor>& tensors) {
  ArgTypes types;
  for (const Tensor& t : tensors) types.emplace_back(t.dtype(), t.shape());
  return types;
}

// `body` traced over arguments of `types`, as a function that others can call.
inline FunctionPtr Traced(StringView name, const ArgTypes& types,
                          const Body& body) {
  GraphBuilder builder(std::make_shared<Graph>(),
                       GraphBuilder::Kind::kFunction);
  EmitterScope emit(&builder);
  Values in;
  for (const auto& [dtype, shape] : types) {
    in.push_back(*builder.AddPlaceholder("x", dtype, shape, nullptr));
  }
  OpScope s;
  Values out = body(s, in);
  EXPECT_TRUE(s.ok()) << s.status();
  for (Value& v : out) v = *builder.Import(v);
  FunctionPtr f =
      MakeFunction(FunctionLibrary::NewName(name), builder, in, out);
  EXPECT_TRUE(GlobalFunctions().Add(f).ok());
  return f;
}

}  // namespace headrace
