// Any bytes as the texts and files that ops read: the first byte chooses what
// reads them.
#include <string>
#include <vector>

#include "base/files/files.h"
#include "eager/eager_emitter.h"

namespace headrace {
namespace {

using Types = std::vector<DType>;
using Tensors = std::vector<Tensor>;

constexpr char kFile[] = "ram://texts_fuzz";

Tensor Text(std::string text) { return Tensor::Scalar(std::move(text)); }

// Runs an op on the text, for the sake of what it does to memory.
void Try(StringView op, const Tensors& inputs, const AttrMap& attrs = {}) {
  RunOp(op, inputs, attrs).status().IgnoreError();
}

void WriteToFile(StringView text) {
  std::string local;
  FileSystem* fs = *FileSystemFor(kFile, &local);
  WriteFileAtomically(fs, local, text).IgnoreError();
}

// Elements of a dataset that reads kFile, to the end or the first error.
void Walk(StringView op, Tensors inputs, AttrMap attrs, const Types& types) {
  const std::vector<Shape> shapes(types.size());
  if (op == "CSVDataset") {
    attrs.Set("output_types", types);
    attrs.Set("output_shapes", shapes);
  }
  const AttrMap spec = {{"output_types", types}, {"output_shapes", shapes}};
  inputs.insert(inputs.begin(), Text(kFile));
  const auto dataset = RunOp(op, inputs, attrs);
  const auto iterator = RunOp("AnonymousIteratorV3", {}, spec);
  if (!dataset.ok() || !iterator.ok()) return;
  Try("MakeIterator", {(*dataset)[0], (*iterator)[0]});
  for (int i = 0; i < 1000; ++i) {
    if (!RunOp("IteratorGetNext", {(*iterator)[0]}, spec).ok()) return;
  }
}

const Types kColumns = {DType::kFloat, DType::kInt32, DType::kInt64,
                        DType::kDouble, DType::kString};
Tensors Defaults() {
  return {Tensor::Vector<float>({}), Tensor::Scalar<int32_t>(1),
          Tensor::Scalar<int64_t>(2), Tensor::Vector<double>({}), Text("none")};
}

void ReadCsv(const std::string& text) {
  for (const bool quotes : {true, false}) {
    Tensors inputs = Defaults();
    inputs.insert(inputs.begin(), Tensor::Vector<std::string>({text}));
    Try("DecodeCSV", inputs,
        {{"OUT_TYPE", kColumns}, {"use_quote_delim", quotes}});
    WriteToFile(text);
    inputs = {Text(""),
              Tensor::Scalar<int64_t>(7),
              Tensor::Scalar(!quotes),
              Text(","),
              Tensor::Scalar(quotes),
              Text("NA"),
              Tensor::Vector<int64_t>({})};
    for (Tensor& t : Defaults()) inputs.push_back(std::move(t));
    Walk("CSVDataset", inputs, {}, kColumns);
  }
}

void ReadLines(const std::string& text) {
  WriteToFile(text);
  for (const char* compression : {"", "ZLIB", "GZIP"}) {
    const Tensors inputs = {Text(compression), Tensor::Scalar<int64_t>(5)};
    Walk("TextLineDataset", inputs, {}, {DType::kString});
    Walk("TFRecordDataset", inputs, {}, {DType::kString});
    Try("DecodeCompressed", {Text(text)}, {{"compression_type", compression}});
  }
  const auto n = [](int64_t v) { return Tensor::Scalar(v); };
  Walk("FixedLengthRecordDatasetV2", {n(1), n(3), n(2), n(4), Text("")}, {},
       {DType::kString});
}

void ReadVocabulary(const std::string& text) {
  WriteToFile(text);
  for (const int64_t key : {-2, -1, 0, 1}) {
    const DType type = key == -1 ? DType::kInt64 : DType::kString;
    const auto table =
        RunOp("AnonymousHashTable", {},
              {{"key_dtype", type}, {"value_dtype", DType::kInt64}});
    if (!table.ok()) return;
    Try("InitializeTableFromTextFileV2", {(*table)[0], Text(kFile)},
        {{"key_index", key}, {"value_index", key == -1 ? 1 : -1}});
  }
}

void DecodeText(const std::string& text) {
  const Tensor input = Tensor::Vector<std::string>({text});
  Try("DecodeBase64", {input});
  for (const char* encoding :
       {"UTF-8", "UTF-16-LE", "UTF-32-BE", "SHIFT-JIS"}) {
    for (const char* errors : {"strict", "replace", "ignore"}) {
      Try("UnicodeTranscode", {input},
          {{"input_encoding", encoding},
           {"output_encoding", "UTF-16-BE"},
           {"errors", errors}});
      Try("UnicodeDecodeWithOffsets", {input},
          {{"input_encoding", encoding}, {"errors", errors}});
    }
  }
  for (const DType type : {DType::kFloat, DType::kInt64}) {
    Try("StringToNumber", {input}, {{"out_type", type}});
    Try("DecodeRaw", {input}, {{"out_type", type}});
    Try("DecodePaddedRaw", {input, Tensor::Scalar<int32_t>(16)},
        {{"out_type", type}});
  }
  Try("StringLower", {input}, {{"encoding", "utf-8"}});
  Try("StringLength", {input}, {{"unit", "UTF8_CHAR"}});
  Try("Substr",
      {Text(text), Tensor::Scalar<int32_t>(-3), Tensor::Scalar<int32_t>(2)},
      {{"unit", "UTF8_CHAR"}});
}

// Texts that say what is to be done.
void ReadRules(const std::string& text) {
  Tensor matrix = *Tensor::Allocate(DType::kFloat, Shape{2, 2});
  std::fill_n(matrix.data<float>(), 4, 1.0f);
  Try("Einsum", {matrix}, {{"equation", text}, {"N", 1}});
  Try("Einsum", {matrix, matrix}, {{"equation", text}, {"N", 2}});
  Try("StringFormat", {matrix}, {{"template", text}, {"placeholder", "%s"}});
  Try("RegexReplace", {Text("ab12"), Text(text), Text("\\1")});
  Try("RegexReplace", {Text("ab12"), Text("(b)"), Text(text)});
  Try("AsString", {matrix}, {{"fill", text}});
  Try("RestoreV2",
      {Text("ram://none"), Tensor::Vector<std::string>({"v"}),
       Tensor::Vector<std::string>({text})},
      {{"dtypes", Types{DType::kFloat}}});
  Try("MatchingFiles", {Text("ram://" + text)});
}

}  // namespace
}  // namespace headrace

extern "C" int LLVMFuzzerTestOneInput(const char* data, size_t size) {
  using namespace headrace;
  constexpr void (*kReaders[])(const std::string&) = {
      ReadCsv, ReadLines, ReadVocabulary, DecodeText, ReadRules};
  if (size == 0 || size > 1 << 16) return 0;
  const size_t which = static_cast<unsigned char>(data[0]);
  kReaders[which % std::size(kReaders)](std::string(data + 1, size - 1));
  return 0;
}
