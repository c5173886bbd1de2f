// GenerateVocabRemapping: where the words of one vocabulary stood in another.
#include "absl/strings/str_split.h"
#include "base/files/files.h"
#include "base/hash_map.h"
#include "op/op.h"
#include "op/reach.h"

namespace headrace {
namespace {

// The file of input i, and its lines, which are views of `text`.
Status LinesOf(const KernelContext& c, int i, StringView name,
               std::string* text, std::vector<StringView>* lines) {
  const std::string& file = c.in<std::string>(i)[0];
  if (file.empty()) return InvalidArgument(name, " filename cannot be empty.");
  std::string path;
  HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(file, &path));
  HR_ASSIGN_OR_RETURN(*text, ReadWholeFile(fs, path));
  *lines = absl::StrSplit(*text, '\n');
  if (lines->back().empty()) lines->pop_back();
  if (lines->empty()) return OutOfRange("Read less bytes than requested");
  return OkStatus();
}

using Places = HashMap<StringView, int64_t>;

// The lines of the old vocabulary, as far as `most` says, by their places.
StatusOr<Places> PlacesOf(absl::Span<const StringView> lines, int64_t most,
                          const std::string& file) {
  const int64_t count = static_cast<int64_t>(lines.size());
  if (most == 0) {
    return OutOfRange("Finished reading 0 of lines from ", file);
  }
  if (most > count) {
    return InvalidArgument("Invalid vocab_size in ", file, ": expected ", most,
                           " but got ", count);
  }
  Places places;
  for (int64_t i = 0; i < (most < 0 ? count : most); ++i) {
    const auto [at, is_new] = places.emplace(lines[i], i);
    if (is_new) continue;
    return FailedPrecondition(
        "HashTable has different value for same key. Key ", lines[i], " has ",
        at->second, " and trying to add value ", i);
  }
  return places;
}

Status RemapVocabulary(KernelContext& c) {
  const int64_t offset = c.op().int_attr("new_vocab_offset");
  const int64_t count = c.op().int_attr("num_new_vocab");
  std::string new_text, old_text;
  std::vector<StringView> words, old_words;
  HR_RETURN_IF_ERROR(LinesOf(c, 0, "new vocab", &new_text, &words));
  // Upstream names the first file for both.
  HR_RETURN_IF_ERROR(LinesOf(c, 1, "new vocab", &old_text, &old_words));
  HR_ASSIGN_OR_RETURN(const Places places,
                      PlacesOf(old_words, c.op().int_attr("old_vocab_size"),
                               c.in<std::string>(1)[0]));
  const int64_t there = static_cast<int64_t>(words.size());
  if (offset > there || count > there - offset) {
    return InvalidArgument(
        "lookup table size must be larger than last new vocab entry's line");
  }
  int64_t* out = c.out<int64_t>(0);
  int32_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto at = places.find(words[offset + i]);
    out[i] = at == places.end() ? -1 : at->second;
    found += out[i] >= 0;
  }
  *c.out<int32_t>(1) = found;
  return OkStatus();
}

Status RemappedShapes(ShapeContext& c) {
  constexpr const char* kFiles[] = {"new_vocab_file", "old_vocab_file"};
  for (int i = 0; i < 2 && !c.in_graph(); ++i) {
    if (c.input(i).fully_known() && c.input(i).num_elements() != 1) {
      return InvalidArgument(kFiles[i], " should be a single string, but got ",
                             c.input(i));
    }
    if (c.input(i).known_rank() && c.input(i).rank() > 0) {
      return InvalidArgument(kFiles[i], " should be a single string, but got ",
                             c.input(i));
    }
  }
  c.set_output(0, Shape{c.op().int_attr("num_new_vocab")});
  c.set_output(1, Shape());
  return OkStatus();
}

HR_OP(GenerateVocabRemapping)
    .Traits({kReadsFiles})
    .Input("new_vocab_file: string")
    .Input("old_vocab_file: string")
    .Output("remapping: int64")
    .Output("num_present: int32")
    .Attr("new_vocab_offset: int >= 0")
    .Attr("num_new_vocab: int >= 0")
    .Attr("old_vocab_size: int >= -1 = -1")
    .Doc(
        "Of each word of a part of one vocabulary, a line of a file, its line "
        "in another, or -1; and how many are there.")
    .Shape(RemappedShapes)
    .NoGradient()
    .Cpu(Compute<RemapVocabulary>);

}  // namespace
}  // namespace headrace
