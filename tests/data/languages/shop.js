// Code that a JIT makes: its names come from the perf map that node writes.
let sum = 0;
function serve(price) {
    for (let i = 0; i < price; i++) sum = (sum + i * i) % 1000003;
    return sum;
}
function day(customers) {
    let total = 0;
    for (let i = 0; i < customers; i++) total ^= serve(price);
    return total;
}
const price = Math.round(5000 / Number(process.env.PMC_TEST_LOOP_SPEED || 1));
const cpu = () => process.cpuUsage().user + process.cpuUsage().system;
// Called often, so that it is compiled; what is interpreted has no name. For a second of CPU time.
let week = 0;
for (const end = cpu() + 1e6; cpu() < end;) week ^= day(3);
process.exitCode = week === 42 ? 1 : 0;
