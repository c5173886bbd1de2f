#include "bind/records.h"

#include <nanobind/stl/string.h>

#include "base/files/file_system.h"
#include "base/files/remote_file_system.h"
#include "base/guard.h"
#include "base/mutex.h"
#include "bind/python/call_stops.h"
#include "bind/python/status.h"
#include "formats/records.h"

namespace nb = nanobind;

namespace headrace::bind {
namespace {

void Check(const Status& status) {
  if (status.ok()) return;
  RaiseStatus(status, /*in_graph=*/false);
  throw nb::python_error();
}

template <typename T>
T Check(StatusOr<T> result) {
  Check(result.status());
  return *std::move(result);
}

// The bytes of a bytes or str object; valid as long as it is.
StringView BytesOf(nb::handle record) {
  Py_ssize_t size = 0;
  // Upstream's writer takes both: text as UTF-8.
  if (PyUnicode_Check(record.ptr())) {
    const char* text = PyUnicode_AsUTF8AndSize(record.ptr(), &size);
    if (text == nullptr) throw nb::python_error();
    return StringView(text, size);
  }
  char* bytes = nullptr;
  if (!PyBytes_Check(record.ptr())) {
    // The usual bound of Python's own messages.
    PyErr_Format(PyExc_TypeError,
                 "write(): a record is bytes or str, not %.200s",
                 NameOfType(record.ptr()).c_str());
    throw nb::python_error();
  }
  PyBytes_AsStringAndSize(record.ptr(), &bytes, &size);
  return StringView(bytes, size);
}

// One thread at a time uses a writer or an iterator. Calls of files of this
// machine hold the GIL, which would cost a small record more than it takes to
// let go; those of other machines, which may take seconds, let others run.
class FileTurns {
 public:
  void Begin(const FileSystem* fs) {
    remote_ = dynamic_cast<const RemoteFileSystem*>(fs) != nullptr;
  }
  template <typename F>
  Status Take(F&& f) {
    if (!remote_) return f();
    return CallWithoutGil([&]() -> Status {
      const MutexLock lock(mutex_);
      return f();
    });
  }

 private:
  bool remote_ = false;
  Mutex mutex_;  // held for a turn, where the files are remote
};

class PyRecordWriter {
 public:
  PyRecordWriter(const std::string& path, const std::string& compression,
                 const DeflateOptions& options) {
    const Compression kind = Check(ParseCompression(compression));
    std::string local;
    FileSystem* const fs = Check(FileSystemFor(path, &local));
    turns_.Begin(fs);
    Check(turns_.Take([&]() -> Status {
      // As upstream: a writer begins the file anew.
      HR_ASSIGN_OR_RETURN(file_, fs->OpenToWrite(local, WriteMode::kTruncate));
      HR_ASSIGN_OR_RETURN(writer_,
                          RecordWriter::Create(file_.get(), kind, options));
      return OkStatus();
    }));
  }
  void Write(nb::handle record) {
    const StringView bytes = BytesOf(record);
    TakeOpen([&] { return writer_->Write(bytes); });
  }
  void Flush() {
    TakeOpen([&] { return writer_->Flush(); });
  }
  void Close() {
    Check(turns_.Take([&] {
      if (writer_ == nullptr) return OkStatus();
      // Moved out first: a further close() finds nothing, whatever fails below.
      const auto writer = std::move(writer_);
      const auto file = std::move(file_);
      // Both happen, the first error is raised: a file that could not be
      // finished must still be closed.
      Status status = writer->Finish();
      status.Update(file->Close());
      return status;
    }));
  }
  // What is left is written as far as it goes, as upstream's does.
  ~PyRecordWriter() {
    if (writer_ == nullptr) return;
    // Destructors may run amid an exception, so nothing gets out.
    Guarded("a record writer's end", [this] {
      return writer_->Finish();
    }).IgnoreError();
  }

 private:
  template <typename F>
  void TakeOpen(F&& f) {
    Check(turns_.Take([&]() -> Status {
      if (writer_ != nullptr) return f();
      return FailedPrecondition("Writer is closed.");
    }));
  }
  FileTurns turns_;
  std::unique_ptr<WritableFile> file_;
  std::unique_ptr<RecordWriter> writer_;
};

// The records of a file, one a step. A plain file that ends within the header
// of a record ends before it, as upstream's does: it may still be written.
// Other damage is DataLoss.
class PyRecordIterator {
 public:
  PyRecordIterator(const std::string& path, const std::string& compression) {
    const Compression kind = Check(ParseCompression(compression));
    std::string local;
    FileSystem* const fs = Check(FileSystemFor(path, &local));
    plain_ = kind == Compression::kNone;
    turns_.Begin(fs);
    Check(turns_.Take([&]() -> Status {
      HR_ASSIGN_OR_RETURN(file_, fs->OpenToRead(local));
      return OkStatus();
    }));
    reader_ = std::make_unique<RecordReader>(file_.get(), kind);
  }
  nb::bytes Next() {
    std::string record;
    record.swap(record_);  // its room is used again
    bool ended = false;
    const Status status = turns_.Take([&] {
      const StatusOr<bool> more = reader_->Next(&record);
      // A compressed stream says itself where it ends; cut short, it is
      // damaged.
      const bool cut = absl::IsDataLoss(more.status()) && plain_ &&
                       file_->size() - reader_->offset() < kHeaderBytes;
      ended = cut || (more.ok() && !*more);
      return more.status();
    });
    if (ended) throw nb::stop_iteration();
    Check(status);
    nb::bytes bytes(record.data(), record.size());
    record_.swap(record);
    return bytes;
  }
  uint64_t offset() const { return reader_->offset(); }

 private:
  static constexpr uint64_t kHeaderBytes = 12;  // of a record (records.h)
  FileTurns turns_;
  bool plain_;
  std::unique_ptr<RandomAccessFile> file_;
  std::unique_ptr<RecordReader> reader_;
  std::string record_;
};

}  // namespace

void AddRecords(nb::module_& m) {
  nb::class_<PyRecordWriter>(m, "RecordWriter")
      .def("__init__",
           [](PyRecordWriter* self, const std::string& path,
              const std::string& compression, int level, int window_bits,
              int memory_level, int strategy) {
             new (self)
                 PyRecordWriter(path, compression,
                                {level, window_bits, memory_level, strategy});
           })
      .def("write", &PyRecordWriter::Write, nb::arg("record"))
      .def("flush", &PyRecordWriter::Flush)
      .def("close", &PyRecordWriter::Close);
  nb::class_<PyRecordIterator>(m, "RecordIterator")
      .def(nb::init<const std::string&, const std::string&>())
      .def("__iter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__next__", &PyRecordIterator::Next)
      .def("offset", &PyRecordIterator::offset);
}

}  // namespace headrace::bind
