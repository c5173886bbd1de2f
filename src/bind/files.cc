#include "bind/files.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "base/files/files.h"
#include "bind/checkpoint.h"
#include "bind/python/unlocked.h"

namespace nb = nanobind;

namespace headrace::bind {
namespace {

// f(file system, its path).
template <typename F>
auto AtPath(const std::string& path, F&& f) {
  return RunUnlocked([&]() -> decltype(f(nullptr, path)) {
    std::string local;
    HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(path, &local));
    return f(fs, local);
  });
}

class PyFileReader {
 public:
  explicit PyFileReader(const std::string& path)
      : file_(AtPath(path, [](FileSystem* fs, const std::string& p) {
          return fs->OpenToRead(p);
        })) {}
  uint64_t size() const { return file_->size(); }
  nb::bytes Read(uint64_t offset, uint64_t count) {
    const uint64_t there = offset < size() ? size() - offset : 0;
    PyObject* out = PyBytes_FromStringAndSize(
        nullptr, static_cast<Py_ssize_t>(std::min(count, there)));
    if (out == nullptr) throw nb::python_error();
    nb::bytes bytes = nb::steal<nb::bytes>(out);
    char* const data = PyBytes_AsString(out);
    const size_t n = RunUnlocked([&] {
      return file_->ReadSome(offset, absl::MakeSpan(data, bytes.size()));
    });
    if (n == bytes.size()) return bytes;
    return nb::bytes(data, n);
  }

 private:
  const std::unique_ptr<RandomAccessFile> file_;
};

class PyFileWriter {
 public:
  PyFileWriter(const std::string& path, bool append)
      : file_(AtPath(path, [&](FileSystem* fs, const std::string& p) {
          return fs->OpenToWrite(
              p, append ? WriteMode::kAppend : WriteMode::kTruncate);
        })) {}
  void Write(const nb::bytes& data) {
    RunUnlocked(
        [&] { return file_->Append(StringView(data.c_str(), data.size())); });
  }
  void Sync() {
    RunUnlocked([&] { return file_->Sync(); });
  }
  void Close() {
    RunUnlocked([&] { return file_->Close(); });
  }
  uint64_t size() const { return file_->size(); }

 private:
  const std::unique_ptr<WritableFile> file_;
};

std::tuple<uint64_t, int64_t, bool> StatPath(const std::string& path) {
  const FileStat stat = AtPath(
      path, [](FileSystem* fs, const std::string& p) { return fs->Stat(p); });
  return {stat.size, stat.mtime_ns, stat.is_directory};
}

void MovePath(const std::string& from, const std::string& to) {
  AtPath(from, [&](FileSystem* fs, const std::string& p) -> Status {
    std::string target;
    HR_ASSIGN_OR_RETURN(FileSystem * other, FileSystemFor(to, &target));
    if (fs == other) return fs->Rename(p, target);
    return Unimplemented(from, " -> ", to,
                         ": a file is not renamed from one file system to "
                         "another");
  });
}

void CopyPath(const std::string& from, const std::string& to) {
  AtPath(from, [&](FileSystem* fs, const std::string& p) -> Status {
    std::string target;
    HR_ASSIGN_OR_RETURN(FileSystem * other, FileSystemFor(to, &target));
    return CopyFile(fs, p, other, target);
  });
}

}  // namespace

void AddFiles(nb::module_& m) {
  nb::class_<PyFileReader>(m, "FileReader")
      .def(nb::init<const std::string&>())
      .def("size", &PyFileReader::size)
      .def("read", &PyFileReader::Read, nb::arg("offset"), nb::arg("count"));
  nb::class_<PyFileWriter>(m, "FileWriter")
      .def(nb::init<const std::string&, bool>())
      .def("size", &PyFileWriter::size)
      .def("write", &PyFileWriter::Write)
      .def("sync", &PyFileWriter::Sync)
      .def("close", &PyFileWriter::Close);
  m.def("file_stat", &StatPath);
  m.def("file_list", [](const std::string& path) {
    return AtPath(
        path, [](FileSystem* fs, const std::string& p) { return fs->List(p); });
  });
  m.def("file_match", [](const std::string& pattern) {
    return AtPath(pattern, [](FileSystem* fs, const std::string& p) {
      return MatchPaths(fs, p);
    });
  });
  m.def("file_make_directories", [](const std::string& path) {
    AtPath(path, [](FileSystem* fs, const std::string& p) {
      return CreateDirectories(fs, p);
    });
  });
  m.def("file_delete", [](const std::string& path) {
    AtPath(path,
           [](FileSystem* fs, const std::string& p) { return fs->Delete(p); });
  });
  m.def("file_delete_recursively", [](const std::string& path) {
    AtPath(path, [](FileSystem* fs, const std::string& p) {
      return DeleteRecursively(fs, p);
    });
  });
  m.def("write_file_atomically",
        [](const std::string& path, const nb::bytes& data) {
          const StringView bytes(data.c_str(), data.size());
          AtPath(path, [&](FileSystem* fs, const std::string& p) {
            return WriteFileAtomically(fs, p, bytes);
          });
        });
  m.def("file_rename", &MovePath);
  m.def("file_copy", &CopyPath);
}

}  // namespace headrace::bind
