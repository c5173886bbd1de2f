// PrintV2 and Print: text for whoever watches; StringFormat makes it.
#include <atomic>
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "base/files/file_system.h"
#include "op/op.h"
#include "op/reach.h"
#include "op/vectorize.h"
#include "ops/io/summarize.h"

namespace headrace {
namespace {

Status AppendToFile(StringView path, StringView text) {
  std::string local;
  HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(path, &local));
  HR_ASSIGN_OR_RETURN(auto file, fs->OpenToWrite(local, WriteMode::kAppend));
  HR_RETURN_IF_ERROR(file->Append(text));
  return file->Close();
}

void Show(std::FILE* stream, StringView text) {
  std::fwrite(text.data(), 1, text.size(), stream);
  std::fflush(stream);
}

// What log() streams put before a line, or null for no such level.
const char* LogPrefix(StringView stream) {
  if (stream == "log(info)") return "INFO: ";
  if (stream == "log(warning)") return "WARNING: ";
  if (stream == "log(error)") return "ERROR: ";
  return nullptr;
}

Status PrintText(KernelContext& c) {
  if (c.input(0).rank() != 0) {
    return InvalidArgument("Input is expected to be scalar, but got ",
                           c.input(0).shape());
  }
  const std::string& stream = c.op().string_attr("output_stream");
  std::string text = c.input(0).scalar<std::string>();
  StringView path = stream;
  if (absl::ConsumePrefix(&path, "file://")) {
    return AppendToFile(stream, text + c.op().string_attr("end"));
  }
  if (const char* prefix = LogPrefix(stream)) {
    Show(stderr, absl::StrCat(prefix, text, "\n"));
    return OkStatus();
  }
  text += c.op().string_attr("end");
  if (stream == "stdout") {
    Show(stdout, text);
  } else if (stream == "stderr") {
    Show(stderr, text);
  } else {
    return InvalidArgument(
        "Unknown output stream: ", stream,
        ", Valid streams are: stdout stderr log(info) log(warning) log(error)");
  }
  return OkStatus();
}

// (Reach: a stream may be a file, which is asked for where it is opened.)
HR_OP(PrintV2)
    .Traits({kPrintsOut})
    .Input("input: string")
    .Attr("output_stream: string = 'stderr'")
    .Attr("end: string = '\n'")
    .Doc("Prints a string: stdout, stderr, log(LEVEL) or file://PATH.")
    .Stateful()
    .Traits({OpTrait::kKeepsNoInput})
    .Shape(NoOutputs)
    .Vectorize(VectorizeInLoop)
    .Cpu(Compute<PrintText>);

class Print : public Kernel {
 public:
  explicit Print(const ResolvedOp& op)
      : first_n_(op.int_attr("first_n")),
        summarize_(op.int_attr("summarize")),
        message_(op.string_attr("message")) {}
  bool own_outputs() const override { return true; }
  Status Run(KernelContext& c) override {
    c.set_output(0, c.input(0));
    if (first_n_ >= 0 && printed_.fetch_add(1) >= first_n_) return OkStatus();
    std::string text = message_;
    for (int i = 1; i < c.num_inputs(); ++i) {
      absl::StrAppend(&text, "[", SummarizeFlat(c.input(i), summarize_), "]");
    }
    Show(stderr, text + "\n");
    return OkStatus();
  }

 private:
  const int64_t first_n_;
  const int64_t summarize_;
  const std::string message_;
  std::atomic<int64_t> printed_{0};
};

Status PrintGradient(GradientContext& g) {
  g.set(0, g.raw_grad(0));
  return g.status();
}

HR_OP(Print)
    .Traits({kPrintsOut})
    .Input("input: T")
    .Input("data: U")
    .Output("output: T")
    .Attr("T: type")
    .Attr("U: list(type) >= 0")
    .Attr("message: string = ''")
    .Attr("first_n: int = -1")
    .Attr("summarize: int = 3")
    .Doc("Hands the input on and prints `data` to stderr.")
    .Stateful()
    .Shape(UnchangedShape)
    .Gradient(PrintGradient)
    .GradientSkips({0}, {0})
    .Vectorize(VectorizeInLoop)
    .Cpu(Bind<Print>);

// The pieces of `text` between the placeholders.
std::vector<StringView> Pieces(StringView text, StringView placeholder) {
  std::vector<StringView> pieces;
  if (placeholder.empty()) return {text};
  size_t at = 0;
  while (true) {
    size_t next = text.find(placeholder, at);
    if (next == StringView::npos) break;
    pieces.push_back(text.substr(at, next - at));
    at = next + placeholder.size();
  }
  pieces.push_back(text.substr(at));
  return pieces;
}

Status Format(KernelContext& c) {
  std::vector<StringView> pieces =
      Pieces(c.op().string_attr("template"), c.op().string_attr("placeholder"));
  if (static_cast<int>(pieces.size()) != c.num_inputs() + 1) {
    return InvalidArgument(
        "num placeholders in template and num inputs must match: ",
        pieces.size() - 1, " vs. ", c.num_inputs());
  }
  std::string text(pieces[0]);
  for (int i = 0; i < c.num_inputs(); ++i) {
    absl::StrAppend(&text,
                    SummarizeEnds(c.input(i), c.op().int_attr("summarize")),
                    pieces[i + 1]);
  }
  *c.out<std::string>(0) = std::move(text);
  return OkStatus();
}

HR_OP(StringFormat)
    .Input("inputs: T")
    .Output("output: string")
    .Attr("T: list(type) >= 0")
    .Attr("template: string = '%s'")
    .Attr("placeholder: string = '%s'")
    .Attr("summarize: int = 3")
    .Doc("Tensors, shortened, put into a text where its placeholders are.")
    .Shape(ScalarShape)
    .Vectorize(VectorizeInLoop)
    .Cpu(Compute<Format>);

}  // namespace
}  // namespace headrace
