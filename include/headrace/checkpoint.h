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

// How a checkpoint is written. The layout is upstream's in every case.
struct CheckpointOptions {
  // Return once the values are taken (references, no copies: later assignments
  // write elsewhere); they are written on another thread while the program goes
  // on. sync() waits and throws what went wrong, as does the next save.
  bool enable_async = false;
  // Most bytes of one data file, tensors that do not fit are cut; 0: one file.
  int64_t max_shard_bytes = 0;
  // Return only when the files have reached the disk. The environment's
  // HEADRACE_SYNC=0 turns this off for the whole process, Python's saves too.
  bool sync = true;
  // Called with the path when all is written, on the thread that writes, so
  // with enable_async not on the caller's.
  std::vector<std::function<void(const std::string& path)>> write_callbacks;
};

// Saves and restores what is tracked below its parts: tf.train.Checkpoint. Keys
// are the paths of names: the part "model", its module "conv", its variable
// "kernel" are "model/conv/kernel/.ATTRIBUTES/VARIABLE_VALUE", as in Python
// with tf.train.Checkpoint(model=...). Modules must outlive it; variables are
// kept. Files are written beside and renamed: a kill at any moment leaves the
// last good checkpoint. Not thread-safe; the variables may be assigned to
// meanwhile.
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
  // Names of parts are distinct. Parts are looked through at each save, so what
  // they track later is saved too.
  explicit Checkpoint(const std::vector<Part>& parts);
  ~Checkpoint();

  // Writes PREFIX-N, N one more than the time before (earlier programs'
  // included, once a checkpoint was restored), and makes it the newest of its
  // folder, which is made if missing. Returns PREFIX-N. Throws kInvalidArgument
  // for a prefix that ends in a slash, and what writing fails with. Other
  // processes may save other prefixes into the folder meanwhile; with
  // set_max_to_keep let there be one (a CheckpointManager sees to that). With
  // set_max_to_keep it always waits for the files, whatever enable_async says:
  // which old ones go is decided when the new one stands.
  std::string save(const std::string& prefix,
                   const CheckpointOptions& options = {});
  // Writes PREFIX alone: neither counts nor touches the folder's file
  // `checkpoint`, so that latest() does not find it.
  void write(const std::string& prefix, const CheckpointOptions& options = {});
  // Returns when asynchronous writes are done; throws what they failed with.
  void sync();
  // Assigns the checkpoint's values; what parts track later (weights that a
  // layer has not made yet) gets its values then. Throws kNotFound without such
  // files, kDataLoss when they are damaged, kInvalidArgument when a value has
  // another dtype or shape than its variable, and, unless `partial`,
  // kFailedPrecondition when a variable is not in the checkpoint. Values of the
  // checkpoint that no variable takes are passed over.
  void restore(const std::string& prefix, bool partial = false);
  // Of `prefix`, the newest `count` saves stay; 0 or less: all.
  void set_max_to_keep(int count);

  // The newest checkpoint of a folder, by its file `checkpoint`, "" if there is
  // none; what restore() takes.
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

  // `checkpoint` must outlive it. Makes the folder, and takes up what its file
  // `checkpoint` lists. Throws kInvalidArgument for an interval without a
  // counter and for a negative max_to_keep.
  CheckpointManager(Checkpoint& checkpoint, const std::string& folder,
                    const Options& options);
  ~CheckpointManager();

  // The new checkpoint's path; "" inside the interval, where nothing is done.
  // `number` takes the place of the save counter in its name. Throws
  // kFailedPrecondition while the manager of another process, which has saved
  // into the folder, lives: each would delete the other's checkpoints.
  std::string save(const CheckpointOptions& options = {},
                   bool check_interval = true, int64_t number = -1);
  // Restores the newest one (its path), or calls init_fn (""). Values that the
  // checkpoint lacks are no error here, as in Python.
  std::string restore_or_initialize();
  // Returns when asynchronous saves are done; throws what they failed with.
  void sync();

  // Paths of those that are kept, the oldest first.
  std::vector<std::string> checkpoints() const;
  // "" if there is none.
  std::string latest_checkpoint() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Writes records (TFRecord: each with its length and checksums) into a new
// file; one that exists is replaced. Not thread-safe.
class HR_API TFRecordWriter {
 public:
  // `compression` is "" (none), "GZIP", "ZLIB" or "SNAPPY", of the whole file;
  // others are kInvalidArgument. Throws what opening the file fails with.
  explicit TFRecordWriter(const std::string& path,
                          const std::string& compression = "");
  // Closes; errors at that point are lost, so call close() where they matter.
  ~TFRecordWriter();
  // Any bytes, none among them. kFailedPrecondition after close().
  void write(std::string_view record);
  // Readers of the file can see all records after this. Not synced to the disk.
  void flush();
  // No record can be written afterwards; a further close() does nothing. Throws
  // what the last bytes failed with.
  void close();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Reads a file of records from front to back, in constant memory beside the
// record. Not thread-safe.
class HR_API TFRecordReader {
 public:
  // The compression that the file was written with; it is not guessed. Throws
  // kNotFound without such a file.
  explicit TFRecordReader(const std::string& path,
                          const std::string& compression = "");
  ~TFRecordReader();
  // Puts the next record into *record; false at the end. Throws kDataLoss for a
  // damaged or cut record, and then at every further call.
  bool next(std::string* record);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Scalars for TensorBoard, in a new event file of `folder` (made if missing).
// Not thread-safe. The destructor closes; errors at that point are lost.
class HR_API EventFileWriter {
 public:
  explicit EventFileWriter(const std::string& folder);
  ~EventFileWriter();
  // A point of the curve `tag`, with the time of the call. In the file after
  // flush() or at the end at the latest.
  void scalar(const std::string& tag, float value, int64_t step);
  void flush();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::tf
