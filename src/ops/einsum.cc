// numpy.einsum for two operands.
#include <algorithm>
#include <string>

#include "ops/broadcast.h"
#include "ops/dot.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/shape.h"

namespace t5x::ops {
namespace {

using Dims = std::vector<int64_t>;

struct Equation {
  std::string a, b, out;
};

void check_indices(const std::string& indices, std::string_view equation) {
  for (size_t i = 0; i < indices.size(); ++i) {
    const char index = indices[i];
    if ((index < 'a' || index > 'z') && (index < 'A' || index > 'Z'))
      throw_error<ShapeError>("expected letters as indices in '{}', got '{}'", equation, index);
    if (indices.find(index, i + 1) != std::string::npos)
      throw_error<ShapeError>("index '{}' comes twice in '{}' of '{}'", index, indices, equation);
  }
}

Equation parse(std::string_view equation) {
  std::string text;
  std::copy_if(equation.begin(), equation.end(), std::back_inserter(text), [](char c) { return c != ' '; });
  const size_t comma = text.find(','), arrow = text.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || comma > arrow ||
      text.find(',', comma + 1) != std::string::npos)
    throw_error<ShapeError>("expected an equation of two operands such as 'ab,bc->ac', got '{}'", equation);
  Equation e{text.substr(0, comma), text.substr(comma + 1, arrow - comma - 1), text.substr(arrow + 2)};
  for (const std::string* part : {&e.a, &e.b, &e.out}) check_indices(*part, equation);
  for (char index : e.out) {
    if (e.a.find(index) == std::string::npos && e.b.find(index) == std::string::npos)
      throw_error<ShapeError>("index '{}' of the result is in no operand of '{}'", index, equation);
  }
  return e;
}

bool has(const std::string& indices, char index) { return indices.find(index) != std::string::npos; }
int64_t position(const std::string& indices, char index) { return static_cast<int64_t>(indices.find(index)); }

void check_rank(const std::string& indices, Tensor x, std::string_view equation) {
  if (indices.size() != x.rank())
    throw_error<ShapeError>("'{}' of '{}' names {} indices, the operand is {}", indices, equation,
                            indices.size(), x.type().describe());
}

// Sums over the indices that neither the other operand nor the result has.
Tensor sum_lonely(Tensor x, std::string& indices, const std::string& other, const std::string& out) {
  Dims axes;
  std::string kept;
  for (char index : indices) {
    if (has(other, index) || has(out, index)) {
      kept += index;
    } else {
      axes.push_back(position(indices, index));
    }
  }
  indices = kept;
  return axes.empty() ? x : reduce_sum(x, axes);
}

}  // namespace

Tensor einsum(std::string_view equation, Tensor a, Tensor b) {
  return in_operation("einsum", [&] {
    Equation e = parse(equation);
    check_rank(e.a, a, equation);
    check_rank(e.b, b, equation);
    for (char index : e.a) {
      if (has(e.b, index) && a.dim(position(e.a, index)) != b.dim(position(e.b, index)))
        throw_error<ShapeError>("index '{}' of '{}' has size {} in the first operand and {} in the second",
                                index, equation, a.dim(position(e.a, index)), b.dim(position(e.b, index)));
    }
    a = sum_lonely(a, e.a, e.b, e.out);
    b = sum_lonely(b, e.b, e.a, e.out);
    std::string batch, contracted, free_a, free_b;
    for (char index : e.a) (!has(e.b, index) ? free_a : has(e.out, index) ? batch : contracted) += index;
    for (char index : e.b) {
      if (!has(e.a, index)) free_b += index;
    }
    // A dense layer with a kernel of several axes: one matrix product.
    if (batch.empty() && !contracted.empty() && !free_b.empty() && e.a == free_a + contracted &&
        e.b == contracted + free_b && e.out == free_a + free_b) {
      Dims dims, outer;
      for (char index : free_a) outer.push_back(a.dim(position(e.a, index)));
      dims = outer;
      int64_t columns = 1;
      for (char index : free_b) {
        dims.push_back(b.dim(position(e.b, index)));
        columns *= dims.back();
      }
      int64_t depth = 1;
      for (char index : contracted) depth *= a.dim(position(e.a, index));
      outer.push_back(depth);
      return reshape(matmul(reshape(a, outer), reshape(b, {depth, columns})), dims);
    }
    DotDims dims;
    for (char index : batch) {
      dims.lhs_batch.push_back(position(e.a, index));
      dims.rhs_batch.push_back(position(e.b, index));
    }
    for (char index : contracted) {
      dims.lhs_contracting.push_back(position(e.a, index));
      dims.rhs_contracting.push_back(position(e.b, index));
    }
    const std::string produced = batch + free_a + free_b;
    Dims permutation;
    for (char index : e.out) permutation.push_back(position(produced, index));
    return transpose(dot_general(a, b, dims), permutation);
  });
}

}  // namespace t5x::ops
