// Checkpoints in TensorFlow's format, exchanged with Python and TensorFlow.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/variable.h"

namespace headrace::tf {

struct CheckpointOptions {
  // Return once the values are taken; they are written on another thread while
  // the program goes on. sync() waits and throws what went wrong.
  bool enable_async = false;
  // Most bytes of one data file, tensors that do not fit are cut; 0: one file.
  int64_t max_shard_bytes = 0;
  // Return only when the files have reached the disk. The environment's
  // HEADRACE_SYNC=0 turns this off for the whole process, Python's saves too.
  bool sync = true;
  // Called with the path when all is written, on the thread that writes.
  std::vector<std::function<void(const std::string& path)>> write_callbacks;
};

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
  // of its folder. Returns PREFIX-N. Throws kFailedPrecondition while another
  // process saves into that folder.
  std::string save(const std::string& prefix,
                   const CheckpointOptions& options = {});
  // Writes PREFIX alone.
  void write(const std::string& prefix, const CheckpointOptions& options = {});
  // Returns when asynchronous writes are done; throws what they failed with.
  void sync();
  // Assigns the checkpoint's values. Throws kNotFound without such files,
  // kDataLoss when they are damaged, kInvalidArgument when a value has another
  // dtype or shape than its variable, and, unless `partial`,
  // kFailedPrecondition when a variable is not in the checkpoint.
  void restore(const std::string& prefix, bool partial = false);
  // Of `prefix`, the newest `count` saves stay.
  void set_max_to_keep(int count);

  // The newest checkpoint of a folder, "" if there is none.
  static std::string latest(const std::string& folder);
  // How often it was saved, earlier programs included.
  int64_t save_counter() const;

 private:
  friend class CheckpointManager;
  struct State;
  std::unique_ptr<State> state_;
};

// Keeps the newest checkpoints of a Checkpoint in a folder, and its file
// `checkpoint`, as Python's CheckpointManager does. Not thread-safe.
class HR_API CheckpointManager {
 public:
  struct Options {
    int max_to_keep = 0;  // 0: all stay
    // One checkpoint in so many hours is kept for ever; 0: none.
    double keep_checkpoint_every_n_hours = 0;
    std::string checkpoint_name = "ckpt";  // FOLDER/ckpt-1, ...
    // Saves are at least checkpoint_interval steps apart, as step_counter (an
    // integer scalar) counts them; 0: always.
    Variable step_counter;
    int64_t checkpoint_interval = 0;
    // Called by restore_or_initialize where there is no checkpoint.
    std::function<void()> init_fn;
  };

  // `checkpoint` must outlive it. Makes the folder. Throws kInvalidArgument for
  // an interval without a counter.
  CheckpointManager(Checkpoint& checkpoint, const std::string& folder,
                    const Options& options);
  ~CheckpointManager();

  // The new checkpoint's path; "" inside the interval, where nothing is done.
  // `number` takes the place of the save counter in its name. Throws
  // kFailedPrecondition while another process saves into the folder.
  std::string save(const CheckpointOptions& options = {},
                   bool check_interval = true, int64_t number = -1);
  // Restores the newest one (its path), or calls init_fn ("").
  std::string restore_or_initialize();
  void sync();

  // Oldest first.
  std::vector<std::string> checkpoints() const;
  // "" if there is none.
  std::string latest_checkpoint() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Writes records (TFRecord) into a new file. Not thread-safe.
class HR_API TFRecordWriter {
 public:
  // `compression` is "", "GZIP" or "ZLIB".
  explicit TFRecordWriter(const std::string& path,
                          const std::string& compression = "");
  // Closes; errors at that point are lost.
  ~TFRecordWriter();
  void write(std::string_view record);
  // Readers of the file can see all records after this.
  void flush();
  // No record can be written afterwards.
  void close();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Reads a file of records from front to back. Not thread-safe.
class HR_API TFRecordReader {
 public:
  explicit TFRecordReader(const std::string& path,
                          const std::string& compression = "");
  ~TFRecordReader();
  // Puts the next record into *record; false at the end. Throws kDataLoss for a
  // damaged or cut record.
  bool next(std::string* record);

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
