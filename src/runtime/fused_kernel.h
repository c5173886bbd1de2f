// One kernel for a chain of element-wise ops and reductions of rows, run tile
// by tile.
#pragma once

#include <memory>
#include <vector>

#include "op/kernel.h"
#include "op/op_traits.h"
#include "op/passes/call_work.h"
#include "op/passes/row_reduction.h"
#include "tensor/shape.h"

namespace headrace {

// How an operand lies against the fused shape of `rows` x `inner` elements.
enum class Layout : uint8_t {
  kFull,    // one element an element
  kScalar,  // one for all
  kRow,     // `inner` elements, the same for every row
  kColumn,  // one a row
  kPart,    // `inner` elements of each row of a wider matrix
};

// The operand's layout in a group of `shape`; false when there is none. Sets
// *inner for rows and columns.
bool LayoutOf(const Shape& operand, const Shape& shape, Layout* layout,
              int64_t* inner);

// Built by the fusing pass. Registers hold a tile each; register r < inputs is
// input r.
class FusedKernel : public Kernel, public KnowsWork {
 public:
  struct Instruction {
    void* fn;  // as ElementwiseLoop::fn
    ElementwiseLoop::Kind kind;
    int16_t a, b;    // registers; b unused for unary
    int16_t y;       // register
    int16_t output;  // stored as this output, or -1
    uint8_t bytes;   // of an element of y
    // Stored as a part of this output, whose rows have `width` elements, from
    // `first` on; -1: not.
    int16_t joined = -1;
    int64_t first = 0, width = 0;
    // Not null: y is this reduction of a's row, fn and kind do not count.
    const RowReducer* reducer = nullptr;
    bool column = false;  // y is one element a row
    OpRole role = OpRole::kNone;
    // Keeps fn's code and tables alive.
    std::shared_ptr<Kernel> kernel;
  };
  struct Input {
    Layout layout;
    uint8_t bytes;  // of an element
    // Of kPart, in elements: where it begins in a row, and a row's length.
    int64_t first = 0, width = 0;
  };

  FusedKernel(std::vector<Input> inputs, std::vector<Instruction> code,
              int registers, int64_t rows, int64_t inner, double cost);

  Status Run(KernelContext& c) override;
  // An input's elements from the range's first one on, wherever they lie.
  struct Given {
    int input = -1;
    const void* elements = nullptr;
  };
  // Elements [begin, end) alone, on this thread; whole rows. `given` (of the
  // full layout) is read in place of the context's tensor.
  void RunRange(const KernelContext& c, int64_t begin, int64_t end,
                Given given) const;
  // Inputs whose memory output 0 may take over, as OpDef::in_place_inputs.
  uint32_t in_place_inputs() const;
  CallWork WorkOf(absl::Span<const Shape* const>,
                  absl::Span<const Shape* const>) const override {
    const double elements = static_cast<double>(rows_) * inner_;
    // Cut by tiles, or rows.
    return {cost_ * elements,
            std::max<int64_t>(1, rows_ * inner_ / std::max<int64_t>(tile_, 1))};
  }
  const std::vector<Instruction>& code() const { return code_; }
  const std::vector<Input>& inputs() const { return inputs_; }

 private:
  struct Tile;
  void AssignPlaces();
  void RunTile(const KernelContext& c, Tile& t, int64_t begin, int64_t n) const;
  void Reduce(const Instruction& i, Tile& t, void* y, int64_t n) const;
  // Where the tile's first element goes in the output that y is part of.
  char* JoinedAt(const KernelContext& c, const Instruction& i,
                 int64_t begin) const;
  // Takes note of where y is, a tile's elements, and copies them to the output
  // that they are part of, if they were not made there.
  void Store(const KernelContext& c, const Instruction& i, Tile& t, char* y,
             int64_t begin, int64_t n) const;
  void LoadInput(const KernelContext& c, Tile& t, int r, int64_t begin,
                 int64_t n) const;

  const std::vector<Input> inputs_;
  std::vector<Instruction> code_;
  const int registers_;
  const int64_t rows_, inner_;
  const double cost_;     // nanoseconds an element
  bool reduces_ = false;  // a tile is a whole row
  bool by_rows_ = false;  // some operand is a row, a column or part of rows
  bool expands_ = false;  // rows too short to be tiles: operands are repeated
  int64_t tile_ = 0;      // elements
  // Where a register's own memory lies in a tile's, in bytes: registers that
  // are never needed at the same time share it. -1 for inputs read in place.
  std::vector<int64_t> place_;
  int64_t tile_bytes_ = 0;
};

}  // namespace headrace
