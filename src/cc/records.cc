// Record files for C++.
#include "formats/records.h"

#include "base/files/file_system.h"
#include "base/guard.h"
#include "cc/access.h"
#include "headrace/checkpoint.h"

namespace headrace::tf {

using internal::Check;

struct TFRecordWriter::State {
  std::unique_ptr<WritableFile> file;
  std::unique_ptr<RecordWriter> writer;  // null once closed

  RecordWriter& Open() {
    if (writer == nullptr) Check(FailedPrecondition("Writer is closed."));
    return *writer;
  }
};

TFRecordWriter::TFRecordWriter(const std::string& path,
                               const std::string& compression)
    : state_(std::make_unique<State>()) {
  // Before the file is opened, which would cut it off.
  const Compression kind = Check(ParseCompression(compression));
  std::string local;
  FileSystem* const fs = Check(FileSystemFor(path, &local));
  state_->file = Check(fs->OpenToWrite(local, WriteMode::kTruncate));
  state_->writer = Check(RecordWriter::Create(state_->file.get(), kind));
}

TFRecordWriter::~TFRecordWriter() {
  if (state_->writer == nullptr) return;
  Guarded("a record writer's end", [this] {
    return state_->writer->Finish();
  }).IgnoreError();
}

void TFRecordWriter::write(std::string_view record) {
  Check(state_->Open().Write(StringView(record.data(), record.size())));
}

void TFRecordWriter::flush() { Check(state_->Open().Flush()); }

void TFRecordWriter::close() {
  if (state_->writer == nullptr) return;
  // Closed whatever happens: a further close() must not write again.
  const auto writer = std::move(state_->writer);
  // The file is closed also where the writer failed; the first error is told.
  Status status = writer->Finish();
  status.Update(state_->file->Close());
  Check(status);
}

struct TFRecordReader::State {
  std::unique_ptr<RandomAccessFile> file;
  std::unique_ptr<RecordReader> reader;
};

TFRecordReader::TFRecordReader(const std::string& path,
                               const std::string& compression)
    : state_(std::make_unique<State>()) {
  const Compression kind = Check(ParseCompression(compression));
  std::string local;
  FileSystem* const fs = Check(FileSystemFor(path, &local));
  state_->file = Check(fs->OpenToRead(local));
  state_->reader = std::make_unique<RecordReader>(state_->file.get(), kind);
}

TFRecordReader::~TFRecordReader() = default;

bool TFRecordReader::next(std::string* record) {
  return Check(state_->reader->Next(record));
}

}  // namespace headrace::tf
