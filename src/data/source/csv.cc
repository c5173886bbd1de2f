// CSVDataset: the records of files of separated fields, parsed.
#include "formats/csv.h"

#include "data/dataset_op.h"
#include "data/source/buffered_source.h"
#include "op/op_like.h"
#include "op/reach.h"

namespace headrace {
namespace {

struct CsvSettings {
  StreamFormat stream;
  bool header = false;
  CsvFormat format;
  std::string missing;            // stands for an empty field
  std::vector<int64_t> selected;  // columns, rising; empty: all but
  std::vector<int64_t> excluded;  // these, rising
  Element defaults;               // an empty one: the field is required
};

class CsvDataset : public Dataset {
 public:
  CsvDataset(ElementSpec spec, std::vector<std::string> files,
             CsvSettings settings)
      : Dataset(std::move(spec)),
        files_(std::move(files)),
        settings_(std::move(settings)) {}
  StringView kind() const override { return "CSV"; }

  class Iterator : public IteratorOf<CsvDataset> {
   public:
    using IteratorOf::IteratorOf;
    Status Next(PullContext& c, Element* out, bool* end) override {
      while (true) {
        if (!source_) {
          *end = index_ >= static_cast<int64_t>(dataset().files_.size());
          if (*end) return OkStatus();
          if (Status s = Open(0); !s.ok()) {
            Close();
            return s;
          }
        }
        StatusOr<bool> more = ReadRecord();
        if (!more.ok()) {
          Close();
          return more.status();
        }
        if (*more) return ParseRecord(out);
        Close();
      }
    }
    // Upstream counts buffers, and bytes in the last of them.
    Status Save(PullContext& c, StateWriter& w) override {
      w.PutInt(prefix(), Key("current_file_index"), index_);
      if (!source_) return OkStatus();
      const int64_t at = source_->offset(), size = Buffer();
      // A place at a buffer's end is told as the end of that buffer and not as
      // the beginning of the next, which upstream has not read yet.
      const bool full = at > 0 && at % size == 0;
      w.PutInt(prefix(), Key("pos"), full ? size : at % size);
      w.PutInt(prefix(), Key("num_buffer_reads"), at / size + !full);
      return OkStatus();
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      source_.reset();
      const int64_t files = static_cast<int64_t>(dataset().files_.size());
      HR_ASSIGN_OR_RETURN(index_,
                          r.GetCount(prefix(), Key("current_file_index")));
      if (index_ > files) return DamagedState(prefix());
      // The walk stood between two files.
      if (!r.Has(prefix(), Key("pos"))) return OkStatus();
      HR_ASSIGN_OR_RETURN(const int64_t pos, r.GetCount(prefix(), Key("pos")));
      HR_ASSIGN_OR_RETURN(const int64_t reads,
                          r.GetCount(prefix(), Key("num_buffer_reads")));
      int64_t offset;
      if (index_ == files || pos > Buffer() ||
          __builtin_mul_overflow(std::max<int64_t>(reads - 1, 0), Buffer(),
                                 &offset) ||
          __builtin_add_overflow(offset, pos, &offset)) {
        return DamagedState(prefix());
      }
      return Open(offset);
    }

   private:
    std::string Key(StringView key) const { return FullKey(prefix(), key); }
    const CsvSettings& settings() const { return dataset().settings_; }
    int64_t Buffer() const {
      return static_cast<int64_t>(settings().stream.buffer);
    }
    void Close() {
      source_.reset();
      file_.reset();
      ++index_;
    }
    // At its beginning, behind the header, or at the place of a saved walk.
    Status Open(int64_t offset) {
      source_.reset();
      const std::string& name = dataset().files_[index_];
      std::string path;
      HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(name, &path));
      HR_ASSIGN_OR_RETURN(file_, fs->OpenToRead(path));
      source_ = std::make_unique<BufferedSource>(
          file_.get(), settings().stream.compression, settings().stream.buffer);
      if (offset > 0) return source_->Skip(offset);
      if (!settings().header) return OkStatus();
      // The header is a record like others, quotes and all.
      HR_ASSIGN_OR_RETURN(const bool there, ReadRecord());
      return there ? OkStatus() : InvalidArgument("Can't read header of file");
    }
    // False at the end of the file.
    StatusOr<bool> ReadRecord() {
      CsvRecordEnd end(settings().format);
      bool at_end = false;
      // The search goes on where it ended; quotes may hold any number of line
      // ends.
      while (!end.Find(source_->held(), at_end)) {
        HR_ASSIGN_OR_RETURN(const bool more, source_->Fill());
        at_end = !more;
        if (at_end && source_->held().empty()) return false;
      }
      const StringView record = source_->held().substr(0, end.size());
      // A copy, as further reading moves the buffer.
      record_.assign(record.data(), record.size());
      source_->Consume(end.whole());
      return true;
    }

    Status ParseRecord(Element* out) {
      std::vector<std::string> fields;
      HR_RETURN_IF_ERROR(SplitCsvRecord(record_, settings().format, &fields));
      // An empty line is a record of one empty field.
      if (fields.empty()) fields.emplace_back();
      const int wanted = dataset().width();
      std::vector<int64_t> columns = settings().selected;
      const auto& out_of = settings().excluded;
      if (columns.empty()) {
        for (size_t i = 0; i < fields.size(); ++i) {
          if (!std::binary_search(out_of.begin(), out_of.end(),
                                  static_cast<int64_t>(i))) {
            columns.push_back(static_cast<int64_t>(i));
          }
        }
        if (columns.size() > static_cast<size_t>(wanted)) {
          return InvalidArgument("Expect ", wanted,
                                 " fields but have more in record");
        }
      }
      out->clear();
      for (int i = 0; i < wanted; ++i) {
        if (i >= static_cast<int>(columns.size()) ||
            columns[i] >= static_cast<int64_t>(fields.size())) {
          return InvalidArgument("Expect ", wanted, " fields but have ", i,
                                 " in record");
        }
        HR_ASSIGN_OR_RETURN(Tensor t,
                            ParseField(i, std::move(fields[columns[i]])));
        out->push_back(std::move(t));
      }
      return OkStatus();
    }
    StatusOr<Tensor> ParseField(int i, std::string field) const {
      const DType dtype = dataset().spec().types[i];
      if (field.empty() || field == settings().missing) {
        const Tensor& standard = settings().defaults[i];
        // An empty default marks a field that has to be there.
        if (standard.num_elements() == 1) return standard.WithShape(Shape());
        return InvalidArgument("Field ", i,
                               " is required but missing in record!");
      }
      if (dtype == DType::kString) {
        return Tensor::Scalar<std::string>(std::move(field));
      }
      HR_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(dtype, Shape()));
      if (ParseCsvNumber(field, dtype, t.raw())) return t;
      return InvalidArgument("Field ", i, " in record is not a valid ",
                             DTypeName(dtype), ": ", field);
    }

    int64_t index_ = 0;
    std::unique_ptr<RandomAccessFile> file_;
    std::unique_ptr<BufferedSource> source_;
    std::string record_;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const std::vector<std::string> files_;
  const CsvSettings settings_;
};

StatusOr<std::vector<int64_t>> Columns(const Tensor& t, StringView name) {
  const auto given = t.span<int64_t>();
  std::vector<int64_t> columns(given.begin(), given.end());
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] < 0) {
      return InvalidArgument(name, " should be non-negative indices");
    }
    if (i > 0 && columns[i] <= columns[i - 1]) {
      return InvalidArgument(name, " should be strictly increasing indices");
    }
  }
  return columns;
}

// Inputs 1 to 7; what follows is told by its name.
StatusOr<CsvSettings> Settings(KernelContext& c) {
  CsvSettings s;
  HR_ASSIGN_OR_RETURN(s.stream, StreamInputs(c, 1, 2, 0));
  // The CSV op alone has no default buffer, as upstream's.
  if (s.stream.buffer == 0) {
    return InvalidArgument("buffer_size should be positive");
  }
  HR_ASSIGN_OR_RETURN(s.header, BoolInput(c, 3, "header"));
  HR_ASSIGN_OR_RETURN(const std::string delimiter,
                      TextInput(c, 4, "field_delim"));
  if (delimiter.size() != 1) {
    return InvalidArgument("field_delim should be only 1 char");
  }
  s.format.delimiter = delimiter[0];
  HR_ASSIGN_OR_RETURN(s.format.quotes, BoolInput(c, 5, "use_quote_delim"));
  HR_ASSIGN_OR_RETURN(s.missing, TextInput(c, 6, "na_value"));
  HR_ASSIGN_OR_RETURN(s.selected, Columns(c.input(7), "select_cols"));
  const ArgRange defaults = c.op().input_range("record_defaults");
  for (int i = 0; i < defaults.size(); ++i) {
    const Tensor& t = c.input(defaults.begin + i);
    if (t.rank() > 1) {
      return InvalidArgument("Each record default should be at most rank 1");
    }
    if (t.num_elements() > 1) {
      return InvalidArgument(
          "There should only be 1 default per field but field ", i,
          " has shape ", t.shape());
    }
    s.defaults.push_back(t);
  }
  if (!s.selected.empty() && s.selected.size() != s.defaults.size()) {
    return InvalidArgument("select_cols should match output size");
  }
  // Only V2 has the input.
  const int behind = defaults.begin + defaults.size();
  if (behind < c.num_inputs()) {
    HR_ASSIGN_OR_RETURN(s.excluded, Columns(c.input(behind), "exclude_cols"));
  }
  if (!s.selected.empty() && !s.excluded.empty()) {
    return InvalidArgument(
        "Either select_cols or exclude_cols should be empty");
  }
  return s;
}

Status MakeCsv(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(std::vector<std::string> files,
                      TextsInput(c, 0, "filenames"));
  HR_ASSIGN_OR_RETURN(CsvSettings settings, Settings(c));
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  if (spec.types.size() != settings.defaults.size()) {
    return InvalidArgument("record_defaults should match output size");
  }
  for (const Shape& shape : spec.shapes) {
    if (shape.known_rank() && shape.rank() != 0) {
      return InvalidArgument("Each output shape should be scalar, got ", shape);
    }
  }
  return SetDataset<CsvDataset>(c, std::move(spec), std::move(files),
                                std::move(settings));
}

OpBuilder CsvOp(const char* name, bool excludes) {
  OpBuilder b(name);
  b.Traits({kReadsFiles});
  b.Input("filenames: string")
      .Input("compression_type: string")
      .Input("buffer_size: int64")
      .Input("header: bool")
      .Input("field_delim: string")
      .Input("use_quote_delim: bool")
      .Input("na_value: string")
      .Input("select_cols: int64")
      .Input("record_defaults: output_types");
  if (excludes) b.Input("exclude_cols: int64");
  b.Output("handle: variant")
      .Attr("output_types: list({float, double, int32, int64, string}) >= 1")
      .Attr(kOutputShapes)
      .Doc("The records of files of separated fields, parsed.")
      .Stateful()
      .Shape(ScalarShape)
      .Cpu(ComputeOwn<MakeCsv>);
  return b;
}
[[maybe_unused]] const OpRegistrar kCsvOps[] = {
    CsvOp("CSVDataset", /*excludes=*/false),
    CsvOp("CSVDatasetV2", /*excludes=*/true),
};

[[maybe_unused]] const bool kExperimentalCSV =
    RegisterLike("ExperimentalCSVDataset", "CSVDataset", WithoutMetadata);

}  // namespace
}  // namespace headrace
