// TFRecord files: how many records, how long, and the first ones.
#include <algorithm>
#include <optional>

#include "absl/strings/str_join.h"
#include "base/files/files.h"
#include "command/show/show.h"
#include "command/text/json_writer.h"
#include "formats/records.h"
#include "ops/parsing/example_wire.h"

namespace headrace::command {
namespace {

constexpr int64_t kShownByDefault = 3;
constexpr int64_t kMostValues = 8;  // of a feature in one line
constexpr size_t kMostBytes = 60;   // of a text in one line

struct Feature {
  std::string name;
  FeatureView view;
  int64_t count = 0;
};

// The features, where the record is an Example with some.
std::optional<std::vector<Feature>> FeaturesOf(StringView record) {
  std::vector<Feature> found;
  bool good = !record.empty();
  const bool parsed =
      ForEachFeatureOfExample(record, [&](StringView name, StringView bytes) {
        Feature f;
        f.name = std::string(name);
        good =
            good && ParseFeature(bytes, &f.view) &&
            (f.view.dtype == DType::kInvalid || CountValues(f.view, &f.count));
        found.push_back(std::move(f));
      });
  if (!parsed || !good || found.empty()) return std::nullopt;
  std::sort(found.begin(), found.end(),
            [](const Feature& a, const Feature& b) { return a.name < b.name; });
  return found;
}

// All values of a feature; nothing where it says more than its bytes hold.
template <typename T>
std::vector<T> ValuesOf(const Feature& f) {
  std::vector<T> values(f.count);
  if (!CopyValues(f.view, f.count, values.data())) values.clear();
  return values;
}

template <typename T, typename F>
std::string FirstValues(const Feature& f, F&& text) {
  std::vector<T> values = ValuesOf<T>(f);
  const bool more = static_cast<int64_t>(values.size()) > kMostValues;
  if (more) values.resize(kMostValues);
  return absl::StrCat(
      absl::StrJoin(values, ", ",
                    [&](std::string* out, const T& v) { *out += text(v); }),
      more ? ", ..." : "");
}

std::string ShortBytes(const std::string& bytes) {
  if (bytes.size() <= kMostBytes) return BytesText(bytes);
  return absl::StrCat(BytesText(bytes.substr(0, kMostBytes)), "... (",
                      bytes.size(), " bytes)");
}

void PrintFeature(const Feature& f, Output& out) {
  out.Print("  ", Escaped(f.name), ": ");
  switch (f.view.dtype) {
    case DType::kFloat:
      out.Print("float[", f.count, "] ",
                FirstValues<float>(f, [](float v) { return absl::StrCat(v); }));
      break;
    case DType::kInt64:
      out.Print("int64[", f.count, "] ", FirstValues<int64_t>(f, [](int64_t v) {
                  return absl::StrCat(v);
                }));
      break;
    case DType::kString:
      out.Print("bytes[", f.count, "] ",
                FirstValues<std::string>(f, ShortBytes));
      break;
    default:
      out.Print("nothing");
  }
  out.Print("\n");
}

void WriteFeature(const Feature& f, JsonWriter& json) {
  json.Key(f.name);
  json.BeginObject();
  switch (f.view.dtype) {
    case DType::kFloat:
      json.Key("float");
      json.BeginList();
      for (const float v : ValuesOf<float>(f)) json.Single(v);
      json.End();
      break;
    case DType::kInt64:
      json.IntsMember("int64", ValuesOf<int64_t>(f));
      break;
    case DType::kString:
      json.TextsMember("bytes", ValuesOf<std::string>(f));
      break;
    default:
      break;
  }
  json.End();
}

struct RecordFacts {
  int64_t count = 0;
  uint64_t bytes = 0, least = UINT64_MAX, most = 0;
  std::vector<std::string> first;
};

StatusOr<Compression> CompressionOf(const Source& source,
                                    const RandomAccessFile& file) {
  if (!source.packed) return Compression::kNone;
  std::string head(std::min<uint64_t>(file.size(), 2), '\0');
  HR_RETURN_IF_ERROR(file.Read(0, absl::MakeSpan(head)));
  return head == "\x1f\x8b" ? Compression::kGzip : Compression::kZlib;
}

StatusOr<RecordFacts> ReadRecords(const Source& source, int64_t limit,
                                  const Output& out) {
  HR_ASSIGN_OR_RETURN(const auto file, source.fs->OpenToRead(source.path));
  HR_ASSIGN_OR_RETURN(const Compression compression,
                      CompressionOf(source, *file));
  RecordReader reader(file.get(), compression);
  RecordFacts facts;
  std::string record;
  while (!out.closed()) {
    StatusOr<bool> more = reader.Next(&record);
    if (!more.ok()) {
      return Status(more.status().code(),
                    absl::StrCat(source.given, ": ", more.status().message(),
                                 ", after ", facts.count, " records"));
    }
    if (!*more) break;
    ++facts.count;
    facts.bytes += record.size();
    facts.least = std::min<uint64_t>(facts.least, record.size());
    facts.most = std::max<uint64_t>(facts.most, record.size());
    if (static_cast<int64_t>(facts.first.size()) < limit) {
      facts.first.push_back(record);
    }
  }
  if (facts.count == 0) facts.least = 0;
  return facts;
}

void PrintRecords(const RecordFacts& facts, Output& out) {
  out.Print("TFRecord file: ", facts.count, " records, ", facts.bytes,
            " bytes, ", facts.least, " to ", facts.most, " each\n");
  for (size_t i = 0; i < facts.first.size(); ++i) {
    const auto features = FeaturesOf(facts.first[i]);
    if (!features) {
      out.Print("\nRecord ", i, ": ", ShortBytes(facts.first[i]), "\n");
      continue;
    }
    out.Print("\nRecord ", i, ": an Example\n");
    for (const Feature& f : *features) PrintFeature(f, out);
  }
}

void WriteRecords(const Source& source, const RecordFacts& facts, Output& out) {
  JsonWriter json;
  json.BeginObject();
  json.Member("kind", "records");
  json.Member("path", source.given);
  json.IntMember("count", facts.count);
  json.Key("bytes");
  json.Unsigned(facts.bytes);
  json.Key("records");
  json.BeginList();
  for (const std::string& record : facts.first) {
    json.BeginObject();
    json.IntMember("size", static_cast<int64_t>(record.size()));
    if (const auto features = FeaturesOf(record)) {
      json.Key("example");
      json.BeginObject();
      for (const Feature& f : *features) WriteFeature(f, json);
      json.End();
    }
    json.End();
  }
  json.End();
  json.End();
  out.Print(json.Take());
}

}  // namespace

Status ShowRecords(const Source& source, const Arguments& args, Output& out) {
  HR_ASSIGN_OR_RETURN(int64_t limit,
                      args.Int("limit", kShownByDefault, 0, INT64_MAX));
  if (args.Has("all")) limit = INT64_MAX;
  HR_ASSIGN_OR_RETURN(const RecordFacts facts, ReadRecords(source, limit, out));
  if (args.Has("json")) {
    WriteRecords(source, facts, out);
  } else {
    PrintRecords(facts, out);
  }
  return OkStatus();
}

}  // namespace headrace::command
