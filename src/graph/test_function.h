// Functions written in C++, for tests.
#pragma once

#include <functional>
#include <map>

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
// `behind`: what is known of the tensors behind an argument.
inline FunctionPtr Traced(StringView name, const ArgTypes& types,
                          const Body& body,
                          const std::map<int, HandlePart>& behind = {}) {
  GraphBuilder builder(std::make_shared<Graph>(),
                       GraphBuilder::Kind::kFunction);
  EmitterScope emit(&builder);
  Values in;
  for (const auto& [dtype, shape] : types) {
    std::shared_ptr<const HandleData> handle;
    if (auto it = behind.find(static_cast<int>(in.size()));
        it != behind.end()) {
      handle = std::make_shared<HandleData>(1, it->second);
    }
    in.push_back(*builder.AddPlaceholder("x", dtype, shape, std::move(handle)));
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
