// The one exception that the C++ front end throws.
#pragma once

#include <stdexcept>
#include <string>

#include "headrace/export.h"

namespace headrace::tf {

// The numbers of tensorflow.error.Code, so that they can be handed on to other
// programs as they are. Python raises the class of the same name
// (tf.errors.InvalidArgumentError for kInvalidArgument, and so on).
enum class ErrorCode {
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

// What went wrong, with the op and the shapes in its text (what()). After it is
// thrown all tensors are as they were before the call that threw, and so are
// the variables, but for what ops of a function had assigned before one failed
// or the call was ended (cancellation.h). Code of the user that the library
// calls may throw an Error too: its code arrives unchanged.
class HR_API Error : public std::runtime_error {
 public:
  // `text` is what what() gives.
  Error(ErrorCode code, const std::string& text)
      : std::runtime_error(text), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace headrace::tf
