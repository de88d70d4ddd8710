// Code that a JIT makes: its names come from the perf map that node writes.
let sum = 0;
function serve(price) {
    for (let i = 0; i < price; i++) sum = (sum + i * i) % 1000003;
    return sum;
}
function day(customers) {
    let total = 0;
    for (let i = 0; i < customers; i++) total ^= serve(5000);
    return total;
}
// Called often, so that it is compiled; what is interpreted has no name.
let week = 0;
for (let i = 0; i < 12000; i++) week ^= day(3);
process.exitCode = week === 42 ? 1 : 0;
