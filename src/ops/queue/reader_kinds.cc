// TextLineReaderV2, TFRecordReaderV2, WholeFileReaderV2, IdentityReaderV2,
// FixedLengthRecordReaderV2: what the records of a file are.
#include "absl/strings/strip.h"
#include "base/files/files.h"
#include "formats/records.h"
#include "op/op_like.h"
#include "op/reach.h"
#include "ops/queue/queue_handle.h"
#include "ops/queue/reader.h"

namespace headrace {
namespace {

// "TextLineReader" of either version.
StringView KindOfReader(const ResolvedOp& op) {
  StringView kind = op.name();
  absl::ConsumeSuffix(&kind, "V2");
  return kind;
}

StatusOr<std::string> WholeFile(const std::string& name) {
  std::string path;
  HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(name, &path));
  return ReadWholeFile(fs, path);
}

// The unit itself, or the file that it names.
class WholeReader : public Reader {
 public:
  explicit WholeReader(const ResolvedOp& op)
      : Reader(op.name()), opens_(KindOfReader(op) == "WholeFileReader") {}

 protected:
  bool serializable() const override { return true; }
  Status Open() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    given_ = false;
    return OkStatus();
  }
  StatusOr<bool> Next(Record* record) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (given_) return false;
    record->key = record->value = unit_;
    if (opens_) {
      HR_ASSIGN_OR_RETURN(record->value, WholeFile(unit_));
    }
    given_ = true;
    return true;
  }

 private:
  const bool opens_;
  bool given_ ABSL_GUARDED_BY(mutex_) = false;
};

// Lines; keys number them from 1, header lines included.
class LineReader : public Reader {
 public:
  explicit LineReader(const ResolvedOp& op)
      : Reader(op.name()), skipped_(op.int_attr("skip_header_lines")) {}

 protected:
  Status Open() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    HR_ASSIGN_OR_RETURN(text_, WholeFile(unit_));
    at_ = line_ = 0;
    Record record;
    // Read as lines and not just passed over: keys count them.
    for (int64_t i = 0; i < skipped_; ++i) {
      HR_ASSIGN_OR_RETURN(const bool more, Next(&record));
      if (!more) break;
    }
    return OkStatus();
  }
  StatusOr<bool> Next(Record* record) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (at_ >= text_.size()) return false;
    size_t end = text_.find('\n', at_);
    const size_t next = end == std::string::npos ? text_.size() : end + 1;
    if (end == std::string::npos) end = text_.size();
    if (end > at_ && text_[end - 1] == '\r') --end;
    record->value = text_.substr(at_, end - at_);
    record->key = absl::StrCat(unit_, ":", ++line_);
    at_ = next;
    return true;
  }
  void Close() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    text_ = std::string();
  }

 private:
  const int64_t skipped_;
  std::string text_ ABSL_GUARDED_BY(mutex_);
  size_t at_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t line_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Records of one size between a header and a footer; keys number them.
class FixedReader : public Reader {
 public:
  explicit FixedReader(const ResolvedOp& op)
      : Reader(op.name()),
        header_(op.int_attr("header_bytes")),
        record_(op.int_attr("record_bytes")),
        footer_(op.int_attr("footer_bytes")),
        hop_(op.int_attr("hop_bytes") == 0 ? record_
                                           : op.int_attr("hop_bytes")) {}

 protected:
  Status Open() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    HR_ASSIGN_OR_RETURN(bytes_, WholeFile(unit_));
    at_ = header_;
    count_ = 0;
    return OkStatus();
  }
  StatusOr<bool> Next(Record* record) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto size = static_cast<int64_t>(bytes_.size());
    const int64_t end = size - footer_;  // both are at most a file's size
    if (at_ > end || end - at_ < record_) return false;
    record->value = bytes_.substr(at_, record_);
    record->key = absl::StrCat(unit_, ":", count_++);
    // A hop of any size cannot overflow so; behind the end means that nothing
    // is left.
    at_ = hop_ > end - at_ ? end + 1 : at_ + hop_;
    return true;
  }
  void Close() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    bytes_ = std::string();
  }

 private:
  const int64_t header_, record_, footer_, hop_;
  std::string bytes_ ABSL_GUARDED_BY(mutex_);
  int64_t at_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Records of a TFRecord file; keys say where they begin.
class RecordFileReader : public Reader {
 public:
  RecordFileReader(const ResolvedOp& op, Compression compression)
      : Reader(op.name()), compression_(compression) {}

 protected:
  Status Open() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::string path;
    HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(unit_, &path));
    HR_ASSIGN_OR_RETURN(file_, fs->OpenToRead(path));
    records_ = std::make_unique<RecordReader>(file_.get(), compression_);
    return OkStatus();
  }
  StatusOr<bool> Next(Record* record) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    record->key = absl::StrCat(unit_, ":", records_->offset());
    return records_->Next(&record->value);
  }
  void Close() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    records_.reset();
    file_.reset();
  }

 private:
  const Compression compression_;
  std::unique_ptr<RandomAccessFile> file_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<RecordReader> records_ ABSL_GUARDED_BY(mutex_);
};

Status CheckFixed(const ResolvedOp& op) {
  for (const char* name : {"header_bytes", "footer_bytes", "hop_bytes"}) {
    if (op.int_attr(name) < 0) {
      return InvalidArgument(name, " must be >= 0 not ", op.int_attr(name));
    }
  }
  if (op.int_attr("record_bytes") <= 0) {
    return InvalidArgument("record_bytes must be > 0 not ",
                           op.int_attr("record_bytes"));
  }
  // The first version has no such attribute.
  const std::string* encoding = op.attrs().Get<std::string>("encoding");
  if (encoding != nullptr && !encoding->empty()) {
    return Unimplemented(op.name(), ": encoding '", *encoding,
                         "' is not supported");
  }
  return OkStatus();
}

StatusOr<std::shared_ptr<Reader>> NewReader(const ResolvedOp& op) {
  const StringView kind = KindOfReader(op);
  if (kind == "TextLineReader") return std::make_shared<LineReader>(op);
  if (kind == "FixedLengthRecordReader") {
    HR_RETURN_IF_ERROR(CheckFixed(op));
    return std::make_shared<FixedReader>(op);
  }
  if (kind == "TFRecordReader") {
    HR_ASSIGN_OR_RETURN(const Compression compression,
                        ParseCompression(op.string_attr("compression_type")));
    return std::make_shared<RecordFileReader>(op, compression);
  }
  return std::make_shared<WholeReader>(op);
}

Status MakeReader(KernelContext& c) {
  return MakeHandle<Reader>(c, [&](std::string) { return NewReader(c.op()); })
      .status();
}

OpBuilder ReaderOp(const char* name, std::vector<const char*> attrs,
                   const char* doc) {
  OpBuilder b(name);
  b.Traits({kReadsFiles});
  b.Output("reader_handle: resource");
  for (const char* attr : attrs) b.Attr(attr);
  b.Doc(doc).Stateful().Shape(ScalarShape).Cpu(ComputeOwn<MakeReader>);
  return b;
}

const char kContainer[] = "container: string = ''";
const char kShared[] = "shared_name: string = ''";
const OpRegistrar lines = ReaderOp(
    "TextLineReaderV2", {"skip_header_lines: int = 0", kContainer, kShared},
    "Reads lines.");
const OpRegistrar fixed = ReaderOp(
    "FixedLengthRecordReaderV2",
    {"header_bytes: int = 0", "record_bytes: int", "footer_bytes: int = 0",
     "hop_bytes: int = 0", kContainer, kShared, "encoding: string = ''"},
    "Reads records of one size.");
const OpRegistrar records = ReaderOp(
    "TFRecordReaderV2", {kContainer, kShared, "compression_type: string = ''"},
    "Reads TFRecord files.");
const OpRegistrar whole = ReaderOp("WholeFileReaderV2", {kContainer, kShared},
                                   "Reads files, one record each.");
const OpRegistrar identity = ReaderOp("IdentityReaderV2", {kContainer, kShared},
                                      "Gives what is queued.");

template <bool kDeprecated>
void OldReader(OpDef& def) {
  ByReference(def);
  std::erase_if(def.attrs,
                [](const AttrDef& a) { return a.name == "encoding"; });
  if (kDeprecated) def.deprecation = {26, absl::StrCat("Use ", def.name, "V2")};
}
[[maybe_unused]] const bool kReadersByReference[] = {
    RegisterLike("TextLineReader", "TextLineReaderV2", OldReader<true>),
    RegisterLike("FixedLengthRecordReader", "FixedLengthRecordReaderV2",
                 OldReader<true>),
    RegisterLike("TFRecordReader", "TFRecordReaderV2", OldReader<true>),
    RegisterLike("WholeFileReader", "WholeFileReaderV2", OldReader<false>),
    RegisterLike("IdentityReader", "IdentityReaderV2", OldReader<true>),
};

}  // namespace
}  // namespace headrace
