// Checkpoints in TensorFlow's format, exchanged with Python and TensorFlow.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headrace/variable.h"

namespace headrace::tf {

// Saves and restores what is tracked below its parts. Keys are the paths of
// names: the part "model", its module "conv", its variable "kernel" are
// "model/conv/kernel/.ATTRIBUTES/VARIABLE_VALUE", as in Python with
// tf.train.Checkpoint(model=...). Modules and variables must outlive it. Files
// are written beside and renamed: a kill at any moment leaves the last good
// checkpoint. Not thread-safe.
class HR_API Checkpoint {
 public:
  struct Part {
    Part(std::string n, Module& m) : name(std::move(n)), module(&m) {}
    Part(std::string n, Variable v)
        : name(std::move(n)), variable(std::move(v)) {}
    std::string name;
    Module* module = nullptr;
    Variable variable;
  };
  explicit Checkpoint(const std::vector<Part>& parts);
  ~Checkpoint();

  // Writes PREFIX-N, N one more than the time before, and makes it the newest
  // of its folder. Returns PREFIX-N.
  std::string save(const std::string& prefix);
  // Writes PREFIX alone.
  void write(const std::string& prefix);
  // Assigns the checkpoint's values. Throws kNotFound without such files,
  // kDataLoss when they are damaged, kInvalidArgument when a value has another
  // dtype or shape than its variable, and, unless `partial`,
  // kFailedPrecondition when a variable is not in the checkpoint.
  void restore(const std::string& prefix, bool partial = false);
  // Of `prefix`, the newest `count` saves stay.
  void set_max_to_keep(int count);

  // The newest checkpoint of a folder, "" if there is none.
  static std::string latest(const std::string& folder);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Scalars for TensorBoard, in an event file of `folder` (made if missing). Not
// thread-safe.
class HR_API EventFileWriter {
 public:
  explicit EventFileWriter(const std::string& folder);
  ~EventFileWriter();
  void scalar(const std::string& tag, float value, int64_t step);
  void flush();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::tf
