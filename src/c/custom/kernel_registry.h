// Kernels that users' libraries bring, and which of them serves a call.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "op/kernel.h"
#include "tensorflow/c/kernels.h"
#include "tensorflow/core/framework/kernel_def.pb.h"

namespace headrace::capi {

struct UsersKernel {
  std::string name;  // what its library calls it, for messages
  tensorflow::KernelDef def;
  void* (*create)(TF_OpKernelConstruction*) = nullptr;
  void (*compute)(void*, TF_OpKernelContext*) = nullptr;
  void (*compute_async)(void*, TF_OpKernelContext*,
                        TF_AsyncOpKernelDoneCallback*) = nullptr;
  void (*destroy)(void*) = nullptr;
};

// Keeps the kernel for ever. AlreadyExists where there is one like it, or for a
// CPU's kernel of an op of the library's own. Thread-safe, as are all here.
Status AddUsersKernel(UsersKernel kernel);

// What each is for: of one op, or of all (an empty name).
std::vector<tensorflow::KernelDef> UsersKernelDefs(StringView op);

// The KernelFactory of ops that are defined by TF_RegisterOpDefinition: null
// where no kernel fits, InvalidArgument where several do alike.
StatusOr<std::unique_ptr<Kernel>> BindUsersKernel(const ResolvedOp& op);

// The kernel itself, made for the op.
StatusOr<std::unique_ptr<Kernel>> MakeUsersKernel(const UsersKernel& kernel,
                                                  const ResolvedOp& op);

}  // namespace headrace::capi
