#include "formats/events.h"

#include <chrono>

#include "absl/strings/str_format.h"
#include "base/host_name.h"
#include "tensorflow/core/util/event.pb.h"

namespace headrace {
namespace {

constexpr char kFileVersion[] = "brain.Event:2";
// Readers know files of this writer as event files that upstream's
// EventsWriter made.
constexpr char kWriter[] = "tensorflow.core.util.events_writer";

}  // namespace

double EventClock() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string EventFileName(StringView prefix, int64_t seconds,
                          StringView suffix) {
  return absl::StrFormat("%s.out.tfevents.%010d.%s%s", prefix, seconds,
                         HostName(), suffix);
}

StatusOr<std::unique_ptr<EventWriter>> EventWriter::Create(FileSystem* fs,
                                                           StringView prefix,
                                                           StringView suffix) {
  std::unique_ptr<EventWriter> writer(new EventWriter);
  const int64_t seconds = static_cast<int64_t>(EventClock());
  writer->path_ = EventFileName(prefix, seconds, suffix);
  HR_ASSIGN_OR_RETURN(writer->file_,
                      fs->OpenToWrite(writer->path_, WriteMode::kTruncate));
  HR_ASSIGN_OR_RETURN(writer->records_,
                      RecordWriter::Create(writer->file_.get()));
  tensorflow::Event first;
  // Every event file begins with the version, by which readers know it.
  first.set_wall_time(static_cast<double>(seconds));
  first.set_file_version(kFileVersion);
  first.mutable_source_metadata()->set_writer(kWriter);
  HR_RETURN_IF_ERROR(writer->Write(first));
  // Readers that follow the file (TensorBoard) find the head at once.
  HR_RETURN_IF_ERROR(writer->Flush());
  return writer;
}

Status EventWriter::Write(const tensorflow::Event& event) {
  std::string bytes;
  if (!event.SerializeToString(&bytes)) {
    return InvalidArgument(path_, ": an event of over 2 GiB");
  }
  return records_->Write(bytes);
}

Status EventWriter::WriteScalar(StringView tag, float value, int64_t step,
                                double wall_time) {
  tensorflow::Event event;
  event.set_wall_time(wall_time);
  event.set_step(step);
  auto* item = event.mutable_summary()->add_value();
  item->set_tag(std::string(tag));
  item->set_simple_value(value);
  return Write(event);
}

Status EventWriter::Close() {
  HR_RETURN_IF_ERROR(records_->Finish());
  return file_->Close();
}

StatusOr<std::unique_ptr<EventReader>> EventReader::Open(
    FileSystem* fs, const std::string& path) {
  HR_ASSIGN_OR_RETURN(auto file, fs->OpenToRead(path));
  return std::unique_ptr<EventReader>(new EventReader(std::move(file)));
}

StatusOr<bool> EventReader::Next(tensorflow::Event* event) {
  HR_ASSIGN_OR_RETURN(const bool more, records_.Next(&record_));
  if (!more) return false;
  if (!event->ParseFromString(record_)) {
    return DataLoss(file_->path(), ": the record before ", records_.offset(),
                    " is no event");
  }
  return true;
}

}  // namespace headrace
