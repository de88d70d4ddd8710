# A program with recursion, methods, blocks, generated code and a sort, under stackprof.
# `app.rb SECONDS MODE FILE`: its CPU time, what stackprof samples, and the file that it writes.
require "stackprof"

def leaf(n)
  (1..n).sum { |i| i * i % 7 }
end

def fib(n)
  n < 2 ? n : fib(n - 1) + fib(n - 2)
end

def even(n)
  n == 0 ? leaf(200) : odd(n - 1)
end

def odd(n)
  n == 0 ? leaf(100) : even(n - 1)
end

class Shape
  def self.make(n)
    new(n)
  end

  def initialize(n)
    @n = n
  end

  def area
    leaf(@n)
  end

  def <=>(_)
    leaf(3) <=> 4
  end
end

def sorted
  (1..20).map { |i| Shape.make(i) }.sort { |a, b| a <=> b }
end

def cpu_time
  Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
end

def main(seconds)
  stop = cpu_time + seconds
  loop do
    fib(12)
    even(31)
    Shape.make(40).area
    sorted
    eval("leaf(50)")
    3.times { |i| leaf(i * 50) }
    (0..300).to_a.map(&:to_s)
    break if cpu_time >= stop
  end
end

seconds, mode, file = ARGV
interval = { "object" => 10, "cpu" => 1000 }[mode]
StackProf.run(mode: mode.to_sym, raw: true, interval: interval, out: file) { main(seconds.to_f) }
