// Event files, what TensorBoard shows: a file of records (records.h), each an
// Event; the first says file_version "brain.Event:2" and who wrote it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/files/file_system.h"
#include "formats/records.h"

namespace tensorflow {
class Event;
}

namespace headrace {

// Seconds since 1970, as events carry them.
double EventClock();

// "PREFIX.out.tfevents.SECONDS.HOST" and the suffix: the name of an event file
// begun at that second on this host.
std::string EventFileName(StringView prefix, int64_t seconds,
                          StringView suffix);

// Not thread-safe.
class EventWriter {
 public:
  // Begins a file of that prefix (usually "FOLDER/events"; the folder must
  // exist) and writes its first record. `fs` must outlive the writer.
  static StatusOr<std::unique_ptr<EventWriter>> Create(FileSystem* fs,
                                                       StringView prefix,
                                                       StringView suffix = "");

  Status Write(const tensorflow::Event& event);
  // An event, serialised.
  Status WriteBytes(StringView event) { return records_->Write(event); }
  // One number under a tag, in the old form (simple_value).
  Status WriteScalar(StringView tag, float value, int64_t step,
                     double wall_time);

  // Readers of the file can see all events after this.
  Status Flush() { return records_->Flush(); }
  Status Close();

  const std::string& path() const { return path_; }

 private:
  EventWriter() = default;

  std::string path_;
  std::unique_ptr<WritableFile> file_;
  std::unique_ptr<RecordWriter> records_;
};

// Not thread-safe.
class EventReader {
 public:
  static StatusOr<std::unique_ptr<EventReader>> Open(FileSystem* fs,
                                                     const std::string& path);

  // Reads the next event; false at the end. DataLoss as RecordReader::Next
  // does, and for a record that is no event.
  StatusOr<bool> Next(tensorflow::Event* event);

 private:
  explicit EventReader(std::unique_ptr<RandomAccessFile> file)
      : file_(std::move(file)), records_(file_.get()) {}

  const std::unique_ptr<RandomAccessFile> file_;
  RecordReader records_;
  std::string record_;
};

}  // namespace headrace
