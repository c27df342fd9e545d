// SPDX-License-Identifier: Apache-2.0
// Copyright The Modmill authors
//
// From an access of PicoRV32 to each bus. `select` is high, and address, data and strobe stay, until the cycle in which
// `ready` is high; after it, select is low for a cycle at least. A strobe of 0 is a read.

module bridge_wishbone (
  input clk,
  input rst,
  input select,
  input [11:0] address,
  input [31:0] write_data,
  input [3:0] strobe,
  output ready,
  output error,
  output [31:0] read_data,
  output wb_cyc_i,
  output wb_stb_i,
  output wb_we_i,
  output [11:0] wb_adr_i,
  output [3:0] wb_sel_i,
  output [31:0] wb_dat_i,
  input [31:0] wb_dat_o,
  input wb_ack_o,
  input wb_err_o,
  input wb_stall_o
);
  reg sent;  // a slave that pipelines takes the strobe once

  assign wb_cyc_i = select;
  assign wb_stb_i = select && !sent;
  assign wb_we_i = |strobe;
  assign wb_adr_i = address;
  assign wb_sel_i = |strobe ? strobe : 4'b1111;
  assign wb_dat_i = write_data;
  assign ready = select && (wb_ack_o || wb_err_o);
  assign error = wb_err_o;
  assign read_data = wb_dat_o;
  always @(posedge clk) sent <= !rst && select && !ready && (sent || !wb_stall_o);
endmodule

module bridge_axi4_lite (
  input clk,
  input rst,
  input select,
  input [11:0] address,
  input [31:0] write_data,
  input [3:0] strobe,
  output ready,
  output error,
  output [31:0] read_data,
  output s_axi_awvalid,
  input s_axi_awready,
  output [11:0] s_axi_awaddr,
  output [2:0] s_axi_awprot,
  output s_axi_wvalid,
  input s_axi_wready,
  output [31:0] s_axi_wdata,
  output [3:0] s_axi_wstrb,
  input s_axi_bvalid,
  output s_axi_bready,
  input [1:0] s_axi_bresp,
  output s_axi_arvalid,
  input s_axi_arready,
  output [11:0] s_axi_araddr,
  output [2:0] s_axi_arprot,
  input s_axi_rvalid,
  output s_axi_rready,
  input [31:0] s_axi_rdata,
  input [1:0] s_axi_rresp
);
  reg aw_sent;
  reg w_sent;
  reg ar_sent;
  wire write = select && |strobe;
  wire read = select && !(|strobe);

  assign s_axi_awvalid = write && !aw_sent;
  assign s_axi_wvalid = write && !w_sent;
  assign s_axi_arvalid = read && !ar_sent;
  assign s_axi_awaddr = address;
  assign s_axi_araddr = address;
  assign s_axi_awprot = 3'b000;
  assign s_axi_arprot = 3'b000;
  assign s_axi_wdata = write_data;
  assign s_axi_wstrb = strobe;
  assign s_axi_bready = write;
  assign s_axi_rready = read;
  assign ready = (write && s_axi_bvalid) || (read && s_axi_rvalid);
  assign error = write ? s_axi_bresp[1] : s_axi_rresp[1];
  assign read_data = s_axi_rdata;
  always @(posedge clk) begin
    aw_sent <= !rst && !ready && (aw_sent || (s_axi_awvalid && s_axi_awready));
    w_sent <= !rst && !ready && (w_sent || (s_axi_wvalid && s_axi_wready));
    ar_sent <= !rst && !ready && (ar_sent || (s_axi_arvalid && s_axi_arready));
  end
endmodule

module bridge_apb (
  input clk,
  input rst,
  input select,
  input [11:0] address,
  input [31:0] write_data,
  input [3:0] strobe,
  output ready,
  output error,
  output [31:0] read_data,
  output psel,
  output reg penable,
  output pwrite,
  output [11:0] paddr,
  output [2:0] pprot,
  output [3:0] pstrb,
  output [31:0] pwdata,
  input [31:0] prdata,
  input pready,
  input pslverr
);
  assign psel = select;
  assign pwrite = |strobe;
  assign paddr = address;
  assign pprot = 3'b000;
  assign pstrb = strobe;
  assign pwdata = write_data;
  assign ready = select && penable && pready;
  assign error = pslverr;
  assign read_data = prdata;
  always @(posedge clk) penable <= !rst && select && !ready;
endmodule

module bridge_ahb_lite (
  input clk,
  input rst,
  input select,
  input [11:0] address,
  input [31:0] write_data,
  input [3:0] strobe,
  output ready,
  output error,
  output [31:0] read_data,
  output hsel,
  output [11:0] haddr,
  output [1:0] htrans,
  output [2:0] hsize,
  output [2:0] hburst,
  output [3:0] hprot,
  output hwrite,
  output [31:0] hwdata,
  output hready,
  input [31:0] hrdata,
  input hreadyout,
  input hresp
);
  reg sent;  // the data phase

  assign hsel = select && !sent;
  assign htrans = {hsel, 1'b0};
  assign haddr = address;
  assign hsize = (&strobe || !(|strobe)) ? 3'd2 : 3'd0;
  assign hburst = 3'd0;
  assign hprot = 4'b0011;
  assign hwrite = |strobe;
  assign hwdata = write_data;
  assign hready = hreadyout;
  assign ready = select && sent && hreadyout;
  assign error = hresp;
  assign read_data = hrdata;
  always @(posedge clk) sent <= !rst && select && !ready && (sent || hreadyout);
endmodule
