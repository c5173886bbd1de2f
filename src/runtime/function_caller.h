// Functions as kernels see them: bound by name to an Executable.
#pragma once

#include <memory>

#include "graph/function.h"
#include "op/function_caller.h"

namespace headrace {

// Finds functions in a library, else process-wide. Thread-safe.
class LibraryCaller : public FunctionCaller {
 public:
  // `library` may be null: process-wide only.
  explicit LibraryCaller(std::shared_ptr<FunctionLibrary> library)
      : library_(std::move(library)) {}
  StatusOr<std::shared_ptr<BoundFunction>> Bind(const FuncRef& f) override;
  StatusOr<std::shared_ptr<BoundFunction>> BindLoosely(
      const FuncRef& f) override;
  const FunctionLibrary* library() const override { return library_.get(); }

 private:
  std::shared_ptr<FunctionLibrary> library_;
};

}  // namespace headrace
